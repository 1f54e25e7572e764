#pragma once
/// Repetition of a call that fails for a temporary reason.
#include <wye/base/clock.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace wye::inline v0::base {

/// Spaces the repetitions of a call that fails for a temporary reason, such as exhausted memory,
/// and bounds their duration.
/// Threads: one thread at a time.
class Backoff {
 public:
  /// A driver that has not answered for this time is considered dead.
  static constexpr Duration limit = std::chrono::seconds(1);

  /// Sleeps until the next repetition: 50 us at first, then twice as long each time, 5 ms at most.
  /// Ends early at `until`. Returns false, without sleeping, when no answer has come for `limit`.
  bool sleep(Instant until = Instant::max()) {
    const Instant now = Clock::steady().now();
    if (now - answered_ >= limit) return false;
    if (until > now) std::this_thread::sleep_for(std::min<Duration>(interval_, until - now));
    interval_ = std::min<Duration>(2 * interval_, std::chrono::milliseconds(5));
    return true;
  }
  /// Records an answer: the limit counts from now on.
  void answered() noexcept { answered_ = Clock::steady().now(); }

 private:
  Instant answered_ = Clock::steady().now();
  Duration interval_ = std::chrono::microseconds(50);
};

}  // namespace wye::base
