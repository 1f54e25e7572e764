#pragma once
/// The arithmetic of the sub-allocator: which bytes of a block are allocated. Touches no memory.
#include <cstdint>
#include <optional>
#include <vector>

namespace wye::inline v0::vulkan {

/// Allocates ranges of [0, size) by two-level segregated fit (Masmano et al., 2004). Free ranges
/// are in lists by size: sixteen lists from each power of two to the next. An allocation takes a
/// range of the first list in which every range is large enough; if all of these are empty, the
/// first range that fits. Merges adjacent free ranges. No byte is lost to a size class.
/// Threads: one thread at a time.
/// Cost:   O(1) while a range is found by its list; `free` allocates nothing.
class RangeAllocator {
 public:
  explicit RangeAllocator(std::uint64_t size);

  struct Allocated {
    std::uint64_t offset = 0;
    std::uint32_t id = 0;  ///< for `free`
  };
  /// Returns a range of `size` bytes at a multiple of `alignment` (a power of two), or nothing if
  /// they do not fit. `size` is at least 1.
  std::optional<Allocated> allocate(std::uint64_t size, std::uint64_t alignment);
  /// Frees the range that `allocate` returned. Has no effect on a free one.
  void free(std::uint32_t id) noexcept;

  std::uint64_t used() const noexcept { return used_; }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr std::uint32_t bits = 4, lists = 1u << bits;  // of a level
  struct Range {
    std::uint64_t offset = 0, size = 0;
    std::uint32_t before = none, after = none;   // adjacent ranges
    std::uint32_t previous = none, next = none;  // of its list
    bool is_free = false;
  };
  static std::uint32_t list_of(std::uint64_t size) noexcept;
  bool fits(std::uint32_t id, std::uint64_t size, std::uint64_t alignment) const noexcept;
  std::uint32_t non_empty_from(std::uint32_t list) const noexcept;
  std::uint32_t find(std::uint64_t size, std::uint64_t alignment) const noexcept;
  void prepare_split();
  std::uint32_t split(std::uint32_t id, std::uint64_t at) noexcept;
  void join_next(std::uint32_t id) noexcept;
  void insert(std::uint32_t id) noexcept;
  void remove(std::uint32_t id) noexcept;

  std::vector<Range> ranges_;
  std::uint32_t unused_ = none;           // elements of `ranges_`, linked by `next`
  std::vector<std::uint32_t> heads_;      // the first range of each list
  std::vector<std::uint16_t> non_empty_;  // per level, a bit for each list
  std::uint64_t levels_ = 0;              // a bit for each level with a range
  std::uint64_t used_ = 0;
};

}  // namespace wye::vulkan
