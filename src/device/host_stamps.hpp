#pragma once
/// Stamps that a thread of the host takes.
#include <wye/base/clock.hpp>

#include <atomic>

#include "device/stamps.hpp"

namespace wye::inline v0::device {

/// Stamps of a device whose commands run on threads of this process.
/// Threads: thread-safe.
class HostStamps final : public StampsBase {
 public:
  using StampsBase::StampsBase;
  void take_begin() noexcept { begin_.store(now(), std::memory_order_relaxed); }
  void take_end() noexcept { end_.store(now(), std::memory_order_relaxed); }

 private:
  static Duration::rep now() noexcept { return Clock::steady().now().time_since_epoch().count(); }
  std::optional<StampedTimes> times() noexcept override {
    return StampedTimes{.begin = Duration(begin_.load(std::memory_order_relaxed)),
                        .end = Duration(end_.load(std::memory_order_relaxed)),
                        .clock = StampClock::host};
  }
  // Relaxed: the timeline of the lane orders them.
  std::atomic<Duration::rep> begin_{0};
  std::atomic<Duration::rep> end_{0};
};

}  // namespace wye::device
