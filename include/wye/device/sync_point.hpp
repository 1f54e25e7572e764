#pragma once
/// A point in the order of a device's work.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>

namespace wye {
inline namespace v0 {

namespace device {
class Timeline;
}

/// Reached when all the work before it is done: that of a lane (`Lease::point`), or a host's own (`interop`). One that is
/// empty has been reached.
/// Threads: thread-safe; copies mean the same point.
class WYE_API SyncPoint {
 public:
  SyncPoint() = default;
  explicit SyncPoint(std::shared_ptr<device::Timeline> timeline, std::uint64_t value)
      : timeline_(std::move(timeline)), value_(value) {}

  bool reached() const noexcept;
  /// Waits until it is reached. `deadline` is of the steady clock.
  /// Errors: timed_out; why it never will be: closed, device_lost, or the failure of the work before it.
  Result<void> wait(Deadline deadline = {}) const;

  const std::shared_ptr<device::Timeline>& timeline() const noexcept { return timeline_; }
  std::uint64_t value() const noexcept { return value_; }

 private:
  std::shared_ptr<device::Timeline> timeline_;
  std::uint64_t value_ = 0;
};

}  // namespace v0
}  // namespace wye
