#pragma once
/// The thread of a device that calls back when timelines reach their values.
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace wye::inline v0::device {

class ScheduledTimeline;

/// Polls the timelines of a device that have callbacks, on one thread for all of them. The thread
/// starts with the first callback whose value is not reached. It parks while no such value is in
/// flight.
/// Threads: thread-safe.
/// Cost:    a callback runs later than its value by up to an eighth of the time that the thread has
///          waited, and at most 1 ms. If the thread sleeps in the driver for that value, the
///          callback runs at once.
class TimelineWaiter {
 public:
  /// How the thread sleeps while values are in flight.
  enum class Sleep : std::uint8_t {
    in_driver,      ///< `Timeline::wait` for the value of the oldest callback: submissions complete in order
    between_polls,  ///< parked: the driver cannot wait for several streams
  };
  TimelineWaiter(std::string thread_name, Sleep sleep);
  TimelineWaiter(const TimelineWaiter&) = delete;
  ~TimelineWaiter() { end(); }

  /// Starts the thread unless it runs.
  /// Errors: unavailable (the system gives no thread).
  Result<void> start();
  /// Adds a timeline that has a callback. It is removed after its last callback.
  void add(ScheduledTimeline& timeline) noexcept;
  /// Removes a timeline, and waits until the thread is not polling it. A callback of the timeline
  /// must not call this.
  void remove(ScheduledTimeline& timeline) noexcept;
  /// Waits until the thread holds no handle of a timeline, but for timelines that have callbacks.
  /// Returns at once on the thread itself.
  void await_release() noexcept;
  /// Wakes the thread: a value was submitted, or a timeline or the device has failed.
  void notify() noexcept;
  /// Joins the thread. All timelines of the device have ended.
  void end() noexcept;
  /// Has the end of the process, or the unloading of this library, end the thread: it polls the
  /// driver for work that was abandoned, and the driver is destroyed then. The driver has to be
  /// loaded. The thread is not waited for longer than a second.
  void end_at_exit() noexcept;

 private:
  struct Shared;
  class AtExit;
  std::shared_ptr<Shared> shared_;
};

}  // namespace wye::device
