#include "scheduler/arrangement.hpp"

#include <algorithm>
#include <set>
#include <utility>

namespace wye::inline v0::scheduler {
namespace {

/// Threads: one thread at a time.
class Arranger {
 public:
  Arranger(std::span<const std::size_t> devices, std::span<const std::size_t> calls,
           const Dependencies& dependencies)
      : devices_(devices),
        calls_(calls),
        dependencies_(dependencies),
        followers_(devices.size()),
        open_(devices.size()),
        level_(devices.size()) {
    for (auto* numbers : {&to_.position, &to_.rank, &to_.segment_of, &to_.command_of})
      numbers->assign(devices.size(), 0);
    for (std::size_t s = 0; s < devices.size(); ++s) {
      open_[s] = dependencies.all[s].size();
      for (const std::size_t before : dependencies.all[s]) followers_[before].push_back(s);
      if (open_[s] == 0) ready_.insert(s);
    }
  }

  Arrangement run() {
    while (!ready_.empty()) {
      to_.segments.push_back({devices_[*ready_.begin()], {}});
      order(take_steps());
    }
    return std::move(to_);
  }

 private:
  std::size_t number() const noexcept { return to_.segments.size() - 1; }

  /// Takes all steps that can run on the device of the last segment without another device.
  std::vector<std::size_t> take_steps() {
    const std::size_t device = to_.segments.back().device;
    std::vector<std::size_t> steps;
    for (const std::size_t step : ready_)
      if (devices_[step] == device) steps.push_back(step);
    std::erase_if(ready_, [&](std::size_t step) { return devices_[step] == device; });
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t step = steps[i];
      to_.segment_of[step] = number();
      for (const std::size_t before : dependencies_.all[step])
        if (to_.segment_of[before] == number()) level_[step] = std::max(level_[step], level_[before] + 1);
      for (const std::size_t next : followers_[step]) {
        if (--open_[next] != 0) continue;
        if (devices_[next] == device)
          steps.push_back(next);
        else
          ready_.insert(next);
      }
    }
    return steps;
  }

  /// Adds the calls of steps to the last segment, by level.
  void order(std::vector<std::size_t> steps) {
    std::sort(steps.begin(), steps.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(level_[a], a) < std::pair(level_[b], b);
    });
    std::vector<Segment::Dispatch>& dispatches = to_.segments.back().dispatches;
    std::size_t last_ordered = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::size_t step = steps[i];
      if (i == 0 || level_[step] != level_[steps[i - 1]]) ++rank_;
      to_.rank[step] = rank_;
      to_.position[step] = position_++;
      to_.command_of[step] = dispatches.size();
      const bool is_ordered = needs_barrier(step, last_ordered);
      if (is_ordered) last_ordered = dispatches.size();
      for (std::size_t c = 0; c < calls_[step]; ++c) dispatches.push_back({step, c, is_ordered && c == 0});
    }
  }
  /// Returns whether a step follows another one of the last segment by request, and no barrier is
  /// between them. `last_ordered` is the last command with a barrier.
  bool needs_barrier(std::size_t step, std::size_t last_ordered) const {
    const auto& requested = dependencies_.by_request[step];
    return std::any_of(requested.begin(), requested.end(), [&](std::size_t before) {
      return to_.segment_of[before] == number() && to_.command_of[before] >= last_ordered;
    });
  }

  const std::span<const std::size_t> devices_, calls_;
  const Dependencies& dependencies_;
  std::vector<std::vector<std::size_t>> followers_;
  std::vector<std::size_t> open_;   // steps that each step still waits for
  std::vector<std::size_t> level_;  // of each step within its segment
  std::set<std::size_t> ready_;
  std::size_t position_ = 0, rank_ = 0;
  Arrangement to_;
};

}  // namespace

Arrangement arrange(std::span<const std::size_t> devices, std::span<const std::size_t> calls,
                    const Dependencies& dependencies) {
  return Arranger(devices, calls, dependencies).run();
}

}  // namespace wye::scheduler
