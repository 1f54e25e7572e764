#include "device/barriers.hpp"

#include <algorithm>
#include <utility>

namespace wye::inline v0::device {

void BarrierPlanner::Hull::cover(const Touch& t) {
  first = std::min(first, t.first);
  last = std::max(last, t.last);
}

/// Returns the entry of `memory` in this epoch, or the free entry for it.
BarrierPlanner::Entry& BarrierPlanner::at(std::uint64_t memory) {
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = static_cast<std::size_t>(memory * 0x9e3779b97f4a7c15u >> 32) & mask;
  while (table_[slot].epoch == epoch_ && table_[slot].memory != memory) slot = (slot + 1) & mask;
  return table_[slot];
}

void BarrierPlanner::grow() {
  std::vector<Entry> old(std::max<std::size_t>(16, table_.size() * 2));
  old.swap(table_);
  for (const Entry& entry : old)
    if (entry.epoch == epoch_) at(entry.memory) = entry;
}

bool BarrierPlanner::next(std::span<const Touch> touches) {
  if (table_.empty()) grow();
  const bool barrier = std::any_of(touches.begin(), touches.end(), [&](const Touch& t) {
    const Entry& entry = at(t.memory);
    return t.first < t.last && entry.epoch == epoch_ &&
           (entry.written.overlaps(t) || (writes(t.access) && entry.read.overlaps(t)));
  });
  if (barrier) clear();
  for (const Touch& t : touches) {
    if (t.first >= t.last) continue;
    if (used_ * 2 >= table_.size()) grow();
    Entry& entry = at(t.memory);
    if (entry.epoch != epoch_) {
      entry = Entry{t.memory, epoch_, {}, {}};
      ++used_;
    }
    if (reads(t.access)) entry.read.cover(t);
    if (writes(t.access)) entry.written.cover(t);
  }
  return barrier;
}

void BarrierPlanner::clear() noexcept {
  ++epoch_;
  used_ = 0;
}

std::vector<bool> plan_barriers(std::span<const std::vector<Touch>> touches) {
  BarrierPlanner planner;
  std::vector<bool> barriers;
  barriers.reserve(touches.size());
  for (const std::vector<Touch>& command : touches) barriers.push_back(planner.next(command));
  return barriers;
}

}  // namespace wye::device
