#include "scheduler/tags.hpp"

#include <algorithm>

namespace wye::inline v0::scheduler {

Tags::Tags(const std::vector<TagOptions>& options, const std::vector<TagBudget>& budgets, bool has_shares)
    : has_shares_(has_shares) {
  for (const TagBudget& of : budgets) states_[of.tag].is_listed = true;
  for (const TagOptions& of : options) {
    TagState& state = states_[of.tag];
    state.share = of.share;
    state.limit = of.concurrent;
    state.is_listed = true;
  }
}

TagState* Tags::enter(std::string_view tag) {
  auto state = states_.find(tag);
  if (state == states_.end()) {
    if (!has_shares_) return nullptr;
    if (states_.size() >= forgets_at_) forget_idle();
    state = states_.try_emplace(std::string(tag)).first;
  }
  ++state->second.jobs;
  return &state->second;
}

void Tags::leave(TagState& tag, Duration run_time) noexcept {
  --tag.jobs;
  if (run_time > Duration::zero()) tag.run_time += (run_time - tag.run_time) / 8;
}

Instant Tags::ready(TagState& tag) noexcept {
  const Instant start = next_start(tag);
  const double length = static_cast<double>(tag.run_time.count()) / tag.share;
  tag.finish = start + Duration(static_cast<Duration::rep>(std::clamp(length, 1.0, 1e15)));
  return start;
}

TagState* Tags::with_held() noexcept {
  for (auto& [name, state] : states_)
    if (state.first_held) return &state;
  return nullptr;
}

/// A tag without jobs is forgotten once its last job's virtual end has passed: then a new one
/// starts at the same time.
void Tags::forget_idle() {
  std::erase_if(states_, [&](const auto& entry) {
    const TagState& tag = entry.second;
    return !tag.is_listed && tag.jobs == 0 && tag.finish <= now_;
  });
  forgets_at_ = std::max<std::size_t>(64, 2 * states_.size());
}

}  // namespace wye::scheduler
