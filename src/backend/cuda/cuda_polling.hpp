#pragma once
/// Decides how long a thread polls for the device before it sleeps.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>

namespace wye::inline v0::cuda {

/// The recent waits for one timeline. If they are as short as the limit on average, a thread polls
/// up to the limit: it saves the sleep in the driver. Otherwise it polls for about as long as a
/// sleep costs.
/// Threads: thread-safe. Concurrent additions may lose one of them.
class RecentWaits {
 public:
  /// The approximate cost of a sleep in the driver: an interrupt and a context switch.
  static constexpr Duration cost_of_sleep = std::chrono::microseconds(30);

  /// Returns how long the next wait polls, at most `limit`.
  Duration polling(Duration limit) const noexcept {
    return average_.load(std::memory_order_relaxed) <= limit ? limit : std::min(limit, cost_of_sleep);
  }
  /// Adds a wait. The cost of a sleep does not count, because a thread that polls does not have it.
  /// A long wait counts as four limits, so that later short waits outweigh it soon.
  void add(Duration waited, bool has_slept, Duration limit) noexcept {
    if (has_slept) waited = std::max(waited - cost_of_sleep, Duration::zero());
    const Duration before = average_.load(std::memory_order_relaxed);
    average_.store(before + (std::min(waited, 4 * limit) - before) / 4, std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration> average_{Duration::zero()};
};

}  // namespace wye::cuda
