#pragma once
/// Where barriers go: decided from what commands read and write, by rule and not by vendor.
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wye {
inline namespace v0 {
namespace device {

/// What a command touches, as the planner sees it.
struct Touch {
  std::uint64_t memory = 0;  ///< a number per buffer; 0 is the host's memory
  std::uint64_t first = 0;   ///< bytes [first, last)
  std::uint64_t last = 0;
  Access access = Access::read;
};

/// Decides before which commands everything earlier must have finished. Two commands between which there is
/// no barrier may overlap in time, so no write of one meets a read or write of the other. It never misses a
/// hazard; it may see one where ranges only come close, because it keeps one hull per memory and access.
/// Threads: one thread at a time.
/// Cost:    O(1) per touch; no allocation once it has seen as many memories between two barriers.
class BarrierPlanner {
 public:
  /// Takes the next command, and says whether a barrier goes before it.
  bool next(std::span<const Touch> touches);
  /// Begins anew, keeping its memory.
  void clear() noexcept;

 private:
  struct Hull {
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
    bool meets(const Touch& t) const { return first < t.last && t.first < last; }
    void cover(const Touch& t);
  };
  struct Entry {
    std::uint64_t memory = 0;
    std::uint64_t epoch = 0;
    Hull read;
    Hull written;
  };
  Entry& at(std::uint64_t memory);
  void grow();
  std::vector<Entry> table_;  // open addressing; entries of an earlier epoch are free
  std::uint64_t epoch_ = 1;   // barriers so far
  std::size_t used_ = 0;
};

/// The same over a whole list, as a pure function: `touches[i]` is what command i reads and writes; element i
/// of the answer says whether a barrier goes before it.
std::vector<bool> plan_barriers(std::span<const std::vector<Touch>> touches);

}  // namespace device
}  // namespace v0
}  // namespace wye
