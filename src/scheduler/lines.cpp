#include "scheduler/lines.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace wye::inline v0::scheduler {

Lines::Lines(const Places& places, TimeBook& times, std::size_t devices, bool learns)
    : places_(places),
      times_(times),
      learns_(learns),
      of_places_(1 + devices),
      staged_(1 + devices),
      at_(1 + devices) {}

Line* Lines::find(const Waiting& job) noexcept {
  if (!is_shared(job)) return &of_places_[job.line];
  const Kind kind{.kernels = job.kernels,
                  .movable = job.movable,
                  .preferred = job.preferred,
                  .size_class = size_class(job.size.count),
                  .line = job.line};
  const auto known = shared_.find(kind);
  if (known != shared_.end()) {
    find_home(known->second);
    return &known->second;
  }
  if (shared_.size() >= most_shared_) {
    std::erase_if(shared_, [](const auto& one) { return one.second.uses_ == 0; });
    most_shared_ = std::max(least_shared, 2 * shared_.size());
  }
  try {
    Line line;
    line.prefers = job.preferred != 0;
    const auto add = [&](std::uint16_t group) {
      if (line.of(group)) return;
      const bool is_preferred = group <= 64 && (job.preferred >> (group - 1) & 1) != 0;
      line.groups.push_back(
          {.number = group, .times = times_.row(job.kind(group), job.named), .is_preferred = is_preferred});
    };
    add(line.home = first_group_of(job));
    for (std::uint16_t p = 1; p < places_.size(); ++p)
      if (job.may_move_to(p)) add(places_[p].group);
    Line& added = shared_.emplace(kind, std::move(line)).first->second;
    find_home(added);
    return &added;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Lines::use(Line& line, int more) noexcept {
  if (!line.is_shared()) return;
  if (line.uses_ == 0) link(line);
  line.uses_ += static_cast<std::size_t>(more);
  if (line.uses_ == 0) unlink(line);
}

void Lines::link(Line& line) noexcept {
  Line*& first = at_[line.home];
  line.next_ = first;
  line.link_ = &first;
  if (first) first->link_ = &line.next_;
  first = &line;
}

void Lines::unlink(Line& line) noexcept {
  *line.link_ = line.next_;
  if (line.next_) line.next_->link_ = line.link_;
  line.link_ = nullptr;
}

bool Lines::takes_jobs(std::uint16_t group) const noexcept {
  bool takes = !places_.has_pauses();
  if (!takes) each_place(group, [&](std::uint16_t p) { takes = takes || !places_[p].refusal.until; });
  return takes;
}

/// Finds the home of a shared line, which may have no uses.
void Lines::find_home(Line& line) noexcept {
  if (!learns_) return;
  const std::uint64_t known = times_.known_kinds();
  if (std::exchange(line.known_kinds_, known) != known)
    for (Line::Group& one : line.groups)
      if (one.times && one.times->mean() == Duration::zero()) one.estimate = times_.estimate(*one.times);
  const Line::Group* best = nullptr;
  for (const Line::Group& one : line.groups) {
    const Duration time = one.time();
    const bool is_known = time != Duration::zero();
    bool is_better = !best || (is_known && (best->time() == Duration::zero() || time < best->time()));
    if (best && one.is_preferred != best->is_preferred) is_better = one.is_preferred;
    if (!is_better || !takes_jobs(one.number)) continue;
    best = &one;
    if (!is_known && best == &line.groups.front()) break;
  }
  const std::uint16_t home = best ? best->number : line.groups.front().number;
  if (home == line.home) return;
  if (line.link_) unlink(line);
  line.home = home;
  if (line.uses_ > 0) link(line);
}

void Lines::find_homes() noexcept {
  if (!learns_) return;
  for (Line* line : at_)
    while (line) find_home(*std::exchange(line, line->next_));
}

}  // namespace wye::scheduler
