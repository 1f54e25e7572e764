#include "backend/vulkan/range_allocator.hpp"

#include <iterator>

namespace wye {
inline namespace v0 {
namespace vulkan {

RangeAllocator::RangeAllocator(std::uint64_t size) {
  free_.insert({size, 0});
  ranges_.emplace(0, Range{size, {}});
}

std::optional<std::uint64_t> RangeAllocator::allocate(std::uint64_t size, std::uint64_t alignment) {
  for (auto it = free_.lower_bound({size, 0}); it != free_.end(); ++it) {
    const auto [room, first] = *it;
    const std::uint64_t offset = (first + alignment - 1) & ~(alignment - 1);
    if (offset < first || offset - first > room - size) continue;
    auto range = ranges_.find(first);
    if (offset > first) range = split(range, offset);
    if (range->second.size > size) split(range, offset + size);
    range->second.node = free_.extract({size, offset});
    used_ += size;
    return offset;
  }
  return std::nullopt;
}

void RangeAllocator::free(std::uint64_t offset) noexcept {
  auto range = ranges_.find(offset);
  if (range == ranges_.end() || !range->second.node) return;
  used_ -= range->second.size;
  free_.insert(std::move(range->second.node));
  if (const auto next = std::next(range); next != ranges_.end() && !next->second.node)
    range = join(range, next);
  if (range != ranges_.begin())
    if (const auto before = std::prev(range); !before->second.node) join(before, range);
}

/// Splits a free range in two. The second range begins at `at`.
RangeAllocator::Ranges::iterator RangeAllocator::split(Ranges::iterator range, std::uint64_t at) {
  const std::uint64_t end = range->first + range->second.size;
  Free one{{end - at, at}};
  const auto behind = ranges_.emplace_hint(std::next(range), at, Range{end - at, {}});
  free_.insert(one.extract(one.begin()));  // nothing throws after this line
  resize(range, at - range->first);
  return behind;
}

/// Merges two adjacent free ranges.
RangeAllocator::Ranges::iterator RangeAllocator::join(Ranges::iterator range,
                                                      Ranges::iterator next) noexcept {
  const std::uint64_t size = range->second.size + next->second.size;
  free_.erase({next->second.size, next->first});
  ranges_.erase(next);
  resize(range, size);
  return range;
}

void RangeAllocator::resize(Ranges::iterator range, std::uint64_t size) noexcept {
  auto node = free_.extract({range->second.size, range->first});
  node.value().first = size;
  range->second.size = size;
  free_.insert(std::move(node));
}

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
