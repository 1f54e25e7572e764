#pragma once
/// Time: clocks, deadlines, priorities and requests to stop.
#include <wye/base/config.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace wye::inline v0 {

using Duration = std::chrono::nanoseconds;
/// A point in time of the steady clock.
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// A point in time of the calendar.
using CalendarTime = std::chrono::system_clock::time_point;

/// Orders waiting jobs, and waiting requests for a lease.
enum class Priority : std::uint8_t { low, normal, high };

/// A source of time.
/// Threads: thread-safe.
class WYE_API Clock {
 public:
  virtual ~Clock();
  virtual Instant now() const noexcept = 0;
  /// Returns the machine's steady clock. It is never destroyed.
  static const Clock& steady() noexcept;
};

/// A clock that moves only in `advance`.
/// Threads: thread-safe.
class WYE_API ManualClock final : public Clock {
 public:
  Instant now() const noexcept override;
  /// Moves the clock, and wakes threads of wye that wait until an instant of this clock which it
  /// now shows. If the clock does not move, such a wait ends after the time that it would take on a
  /// clock that runs.
  void advance(Duration by) noexcept;

 private:
  std::atomic<std::int64_t> nanoseconds_{1};
};

/// The end of a wait: an instant, a span of time from the call on, or never. The callee resolves a
/// span with its own clock when the call arrives, so a `Deadline` may be made long before it is
/// used.
/// Threads: thread-compatible.
class Deadline {
 public:
  constexpr Deadline() = default;  ///< never
  template <class Rep, class Period>
  constexpr Deadline(std::chrono::duration<Rep, Period> from_now)  // NOLINT: 20ms is a deadline
      : kind_(Kind::relative), span_(saturate(from_now)) {}
  constexpr Deadline(Instant at) : kind_(Kind::absolute), span_(at.time_since_epoch()) {}  // NOLINT
  static constexpr Deadline never() { return {}; }

  constexpr bool is_never() const { return kind_ == Kind::never; }
  /// Returns the instant of this deadline for a call that arrives at `now`. `never` gives
  /// `Instant::max()`.
  constexpr Instant at(Instant now) const {
    switch (kind_) {
      case Kind::never: return Instant::max();
      case Kind::absolute: return Instant{span_};
      case Kind::relative: break;
    }
    if (now > Instant{} && span_ >= Instant::max() - now) return Instant::max();
    return now + span_;
  }
  Instant at(const Clock& clock) const { return kind_ == Kind::relative ? at(clock.now()) : at(Instant{}); }

 private:
  template <class Rep, class Period>
  static constexpr Duration saturate(std::chrono::duration<Rep, Period> d) {
    using Wide = std::chrono::duration<long double, std::nano>;
    const long double ns = Wide(d).count();
    if (!(ns < static_cast<long double>(Duration::max().count()))) return Duration::max();
    if (ns <= 0) return Duration::zero();
    return Duration(static_cast<Duration::rep>(ns));
  }
  enum class Kind : std::uint8_t { never, relative, absolute };
  Kind kind_ = Kind::never;
  Duration span_{};
};

/// Tells a host function that its job was cancelled or that the job's time limit passed. Valid
/// during the call that received it.
/// Threads: thread-safe.
/// Cost:    `stop_requested` is one load, and one clock read if the job has a time limit. Call it
///          every few thousand items.
class StopToken {
 public:
  StopToken() = default;
  StopToken(const std::atomic<bool>* flag, Instant until = Instant::max(), const Clock* clock = nullptr)
      : flag_(flag), until_(until), clock_(clock) {}
  /// Returns whether it can ever request to stop.
  bool can_stop() const noexcept { return flag_ || (clock_ && until_ != Instant::max()); }
  bool stop_requested() const noexcept {
    if (flag_ && flag_->load(std::memory_order_relaxed)) return true;
    return clock_ && until_ != Instant::max() && clock_->now() >= until_;
  }

 private:
  const std::atomic<bool>* flag_ = nullptr;
  Instant until_ = Instant::max();
  const Clock* clock_ = nullptr;
};

}  // namespace wye
