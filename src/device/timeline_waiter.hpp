#pragma once
/// The thread of a device that calls back when timelines reach their values.
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <string>

namespace wye {
inline namespace v0 {
namespace device {

class ScheduledTimeline;

/// Looks at the timelines of a device that have callbacks, on one thread for all of them. The thread starts with the first
/// callback that has to wait. It parks while no value is in flight that a callback waits for.
/// Threads: thread-safe.
/// Cost:    a callback comes later than its value by an eighth of the time that the thread has waited by then, and by 1 ms at
///          most. If the thread sleeps in the driver for that value, the callback comes at once.
class TimelineWaiter {
 public:
  /// How the thread sleeps while values are in flight.
  enum class Sleep : std::uint8_t {
    in_driver,  ///< `Timeline::wait` for the value whose callback was added first: completions come in order
    between_looks,  ///< parked: the driver cannot wait for several streams
  };
  TimelineWaiter(std::string thread_name, Sleep sleep);
  TimelineWaiter(const TimelineWaiter&) = delete;
  ~TimelineWaiter() { end(); }

  /// Starts the thread unless it runs.
  /// Errors: unavailable (the system gives no thread).
  Result<void> start();
  /// Adds a timeline that has a callback. It is removed once it has none.
  void add(ScheduledTimeline& timeline) noexcept;
  void remove(ScheduledTimeline& timeline) noexcept;
  /// Wakes the thread: a value was submitted, or a timeline or the device has failed.
  void notify() noexcept;
  /// Joins the thread. No timeline of the device is left.
  void end() noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
