#include "scheduler/places.hpp"

#include <algorithm>
#include <tuple>

namespace wye::inline v0::scheduler {

Places::Places(std::uint32_t threads, std::uint32_t lanes, std::uint32_t committed_per_lane,
               std::size_t devices, MemoryInUse memory)
    : lanes_(lanes),
      committed_per_lane_(committed_per_lane),
      memory_(std::move(memory)),
      processors_(1 + devices) {
  all_.reserve(1 + devices);
  all_.emplace_back().limit = threads;
}

void Places::add(const Table& table) noexcept {
  while (all_.size() <= table.choices.size()) {  // within the reserved memory
    const bool is_host = table.choices[all_.size() - 1].is_host;
    const std::uint32_t threads = all_[on_threads].limit;
    Place& place = all_.emplace_back();
    place.is_host = is_host;
    place.limit = is_host ? threads : lanes_;
    place.staged_limit = is_host ? 0 : lanes_ * (committed_per_lane_ - 1);
  }
  for (std::size_t d = 0; d < table.choices.size(); ++d) {
    const Choice& choice = table.choices[d];
    Place& place = all_[1 + d];
    place.group = static_cast<std::uint16_t>(1 + choice.equal);
    place.is_gpu = choice.is_gpu();
    place.shares = choice.shares();
    place.apart = choice.apart;
    if (place.processor != on_threads) continue;
    const auto is_on_it = [&](const Choice& other) { return other.silicon == choice.silicon; };
    const auto first = std::find_if(table.choices.begin(), table.choices.end(), is_on_it);
    place.processor = static_cast<std::uint16_t>(1 + (first - table.choices.begin()));
    if (place.is_host && taken_ == 0) all_[on_threads].processor = place.processor;
  }
}

Duration Places::share(std::uint16_t place, Instant now) noexcept {
  Processor& processor = processors_[all_[place].processor];
  now = std::max(now, processor.at);  // threads read the time before they hold the mutex
  if (processor.jobs > 0) processor.share += (now - processor.at) / processor.jobs;
  processor.at = now;
  return processor.share;
}

bool Places::comes_before(std::uint16_t a, std::uint16_t b) const noexcept {
  const Place& first = all_[a];
  const Place& second = all_[b];
  if (first.committed != second.committed) return first.committed < second.committed;
  const Bytes of_first = memory_(a - 1u), of_second = memory_(b - 1u);
  return std::tuple(of_first.count, first.last_taken) < std::tuple(of_second.count, second.last_taken);
}

void Places::pause(MemoryPause& pause, Instant until) noexcept {
  if (!pause.until) ++paused_;
  pause.until = until;
}

void Places::refuse(std::uint16_t place, bool is_of_group, Instant until) noexcept {
  Place& here = all_[place];
  const auto may_take = [&](const Place& other) {
    return &other != &here && other.shares && other.group == here.group && !other.refusal.until;
  };
  if (!is_of_group || std::any_of(all_.begin(), all_.end(), may_take)) pause(here.refusal, until);
}

void Places::resume(MemoryPause& pause) noexcept {
  if (!pause.until) return;
  pause.until.reset();
  --paused_;
}

void Places::resume_due(Instant now) noexcept {
  for (Place& place : all_)
    for (MemoryPause* const pause : {&place.pause, &place.refusal})
      if (pause->until && *pause->until <= now) resume(*pause);
}

Instant Places::first_resume() const noexcept {
  Instant first = Instant::max();
  for (const Place& place : all_)
    for (const MemoryPause* const pause : {&place.pause, &place.refusal})
      first = std::min(first, pause->until.value_or(first));
  return first;
}

}  // namespace wye::scheduler
