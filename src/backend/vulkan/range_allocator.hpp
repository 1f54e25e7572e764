#pragma once
/// The arithmetic of the sub-allocator: which bytes of a block are allocated. Touches no memory.
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace wye {
inline namespace v0 {
namespace vulkan {

/// Allocates ranges of [0, size) by best fit. Merges adjacent free ranges.
/// Threads: one thread at a time.
/// Cost:   O(log n) in the number of ranges; `free` allocates nothing.
class RangeAllocator {
 public:
  explicit RangeAllocator(std::uint64_t size);

  /// Returns the offset of `size` bytes at a multiple of `alignment` (a power of two), or nothing if they do
  /// not fit. `size` is at least 1.
  std::optional<std::uint64_t> allocate(std::uint64_t size, std::uint64_t alignment);
  /// Frees the range that `allocate` returned.
  void free(std::uint64_t offset) noexcept;

  std::uint64_t used() const noexcept { return used_; }
  /// Returns the size of the largest free range.
  std::uint64_t largest() const noexcept { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  using Free = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // size, offset
  struct Range {
    std::uint64_t size = 0;
    Free::node_type node;  // the spare node of `free_` of an allocated range
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
