#pragma once
/// Which bytes of a block are taken: the arithmetic of the sub-allocator, without any memory.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Hands out ranges of [0, size): best fit, neighbours grow together again when given back.
/// Threads: one thread at a time.
/// Cost:    O(log n) in the number of ranges; giving back does not allocate.
class RangeAllocator {
 public:
  explicit RangeAllocator(std::uint64_t size);

  /// The offset of `size` bytes at a multiple of `alignment` (a power of two), or nothing where they do not
  /// fit. `size` is at least 1.
  std::optional<std::uint64_t> take(std::uint64_t size, std::uint64_t alignment);
  /// Gives back what `take` returned.
  void give(std::uint64_t offset) noexcept;

  std::uint64_t used() const noexcept { return used_; }
  /// The largest range that is free.
  std::uint64_t largest() const noexcept { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  using Free = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // size, offset
  struct Range {
    std::uint64_t size = 0;
    Free::node_type node;  // of a range in use: what it needs to be put into `free_` again
  };
  using Ranges = std::map<std::uint64_t, Range>;  // by offset, without gaps
  Ranges::iterator split(Ranges::iterator range, std::uint64_t at);
  Ranges::iterator join(Ranges::iterator range, Ranges::iterator next) noexcept;
  void resize(Ranges::iterator range, std::uint64_t size) noexcept;

  Ranges ranges_;
  Free free_;
  std::uint64_t used_ = 0;
};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
