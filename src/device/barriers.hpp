#pragma once
/// Plans barriers from the memory that commands read and write, in the same way for every vendor.
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::device {

/// A range of memory that a command accesses.
struct Touch {
  std::uint64_t memory = 0;  ///< a number per buffer; 0 is the host's memory
  std::uint64_t first = 0;   ///< bytes [first, last)
  std::uint64_t last = 0;
  Access access = Access::read;
};

/// Decides which commands need a barrier: all earlier commands complete before it. Commands without
/// a barrier between them may overlap in time, so no write of one overlaps a read or write of the
/// other. The planner never misses a hazard. It may add a barrier for ranges that do not overlap,
/// because it keeps one hull per memory and access.
/// Threads: one thread at a time.
/// Cost:    O(1) per touch; no allocation once it has seen as many memories between two barriers.
class BarrierPlanner {
 public:
  /// Adds the next command. Returns whether it needs a barrier before it.
  bool next(std::span<const Touch> touches);
  /// Forgets all commands and keeps its memory.
  void clear() noexcept;

 private:
  struct Hull {
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
    bool overlaps(const Touch& t) const { return first < t.last && t.first < last; }
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

/// Plans the barriers of a list of commands, as a pure function. `touches[i]` is the memory that
/// command i accesses; element i of the result tells whether the command needs a barrier before it.
std::vector<bool> plan_barriers(std::span<const std::vector<Touch>> touches);

}  // namespace wye::device
