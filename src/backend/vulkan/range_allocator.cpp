#include "backend/vulkan/range_allocator.hpp"

#include <bit>

namespace wye::inline v0::vulkan {

RangeAllocator::RangeAllocator(std::uint64_t size)
    : heads_((list_of(size) / lists + 1) * lists, none), non_empty_(heads_.size() / lists) {
  ranges_.push_back({.offset = 0, .size = size});
  insert(0);
}

/// Returns the list of ranges of `size` bytes: the last one whose smallest size is not larger.
std::uint32_t RangeAllocator::list_of(std::uint64_t size) noexcept {
  if (size < lists) return static_cast<std::uint32_t>(size);
  const auto shift = static_cast<std::uint32_t>(std::bit_width(size)) - 1 - bits;
  return (shift + 1) * lists + (static_cast<std::uint32_t>(size >> shift) & (lists - 1));
}

bool RangeAllocator::fits(std::uint32_t id, std::uint64_t size, std::uint64_t alignment) const noexcept {
  const Range& range = ranges_[id];
  const std::uint64_t skipped = -range.offset & (alignment - 1);
  return skipped <= range.size && size <= range.size - skipped;
}

/// Returns the first list from `list` on that has a range, or `none`.
std::uint32_t RangeAllocator::non_empty_from(std::uint32_t list) const noexcept {
  std::uint32_t level = list / lists;
  if (level >= non_empty_.size()) return none;
  std::uint32_t found = non_empty_[level] & (~0u << list % lists);
  if (found == 0) {
    const std::uint64_t higher = level == 63 ? 0 : levels_ & (~std::uint64_t{0} << (level + 1));
    if (higher == 0) return none;
    level = static_cast<std::uint32_t>(std::countr_zero(higher));
    found = non_empty_[level];
  }
  return level * lists + static_cast<std::uint32_t>(std::countr_zero(found));
}

std::uint32_t RangeAllocator::find(std::uint64_t size, std::uint64_t alignment) const noexcept {
  // Each range of the next list is large enough, but perhaps not after its alignment.
  const std::uint32_t list = list_of(size);
  if (const std::uint32_t larger = non_empty_from(list + 1);
      larger != none && fits(heads_[larger], size, alignment))
    return heads_[larger];
  for (std::uint32_t at = non_empty_from(list); at != none; at = non_empty_from(at + 1))
    for (std::uint32_t id = heads_[at]; id != none; id = ranges_[id].next)
      if (fits(id, size, alignment)) return id;
  return none;
}

std::optional<RangeAllocator::Allocated> RangeAllocator::allocate(std::uint64_t size,
                                                                  std::uint64_t alignment) {
  std::uint32_t id = find(size, alignment);
  if (id == none) return std::nullopt;
  prepare_split();
  remove(id);
  const std::uint64_t offset = (ranges_[id].offset + alignment - 1) & ~(alignment - 1);
  if (offset > ranges_[id].offset) {
    const std::uint32_t front = id;
    id = split(id, offset);
    insert(front);
  }
  if (ranges_[id].size > size) insert(split(id, offset + size));
  used_ += size;
  return Allocated{offset, id};
}

void RangeAllocator::free(std::uint32_t id) noexcept {
  if (id >= ranges_.size() || ranges_[id].is_free || ranges_[id].size == 0) return;
  used_ -= ranges_[id].size;
  if (const std::uint32_t after = ranges_[id].after; after != none && ranges_[after].is_free) {
    remove(after);
    join_next(id);
  }
  if (const std::uint32_t before = ranges_[id].before; before != none && ranges_[before].is_free) {
    remove(before);
    join_next(before);
    id = before;
  }
  insert(id);
}

/// Makes sure that two calls of `split` have an element each.
void RangeAllocator::prepare_split() {
  while (unused_ == none || ranges_[unused_].next == none) {
    ranges_.push_back({.next = unused_});
    unused_ = static_cast<std::uint32_t>(ranges_.size() - 1);
  }
}

/// Ends a range, which is in no list, at `at`. Returns the rest, which is in no list either.
std::uint32_t RangeAllocator::split(std::uint32_t id, std::uint64_t at) noexcept {
  const std::uint32_t rest = unused_;
  unused_ = ranges_[rest].next;
  Range& range = ranges_[id];
  ranges_[rest] = {.offset = at, .size = range.offset + range.size - at, .before = id, .after = range.after};
  if (range.after != none) ranges_[range.after].before = rest;
  range.after = rest;
  range.size = at - range.offset;
  return rest;
}

/// Adds the range after `id` to it. Both are in no list.
void RangeAllocator::join_next(std::uint32_t id) noexcept {
  Range& range = ranges_[id];
  const std::uint32_t gone = range.after;
  range.size += ranges_[gone].size;
  range.after = ranges_[gone].after;
  if (range.after != none) ranges_[range.after].before = id;
  ranges_[gone] = {.next = unused_};
  unused_ = gone;
}

void RangeAllocator::insert(std::uint32_t id) noexcept {
  Range& range = ranges_[id];
  const std::uint32_t list = list_of(range.size), level = list / lists;
  range.is_free = true;
  range.previous = none;
  range.next = heads_[list];
  if (range.next != none) ranges_[range.next].previous = id;
  heads_[list] = id;
  non_empty_[level] = static_cast<std::uint16_t>(non_empty_[level] | 1u << list % lists);
  levels_ |= std::uint64_t{1} << level;
}

void RangeAllocator::remove(std::uint32_t id) noexcept {
  Range& range = ranges_[id];
  const std::uint32_t list = list_of(range.size), level = list / lists;
  range.is_free = false;
  if (range.next != none) ranges_[range.next].previous = range.previous;
  if (range.previous != none) {
    ranges_[range.previous].next = range.next;
    return;
  }
  heads_[list] = range.next;
  if (range.next != none) return;
  non_empty_[level] = static_cast<std::uint16_t>(non_empty_[level] & ~(1u << list % lists));
  if (non_empty_[level] == 0) levels_ &= ~(std::uint64_t{1} << level);
}

}  // namespace wye::vulkan
