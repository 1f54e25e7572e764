#pragma once
/// The synchronization primitive of devices, lanes and the host.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>

#include "base/process.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;
class Turns;

/// The one synchronization primitive: a value that only grows, or a failure that stays.
/// Threads: thread-safe.
class Timeline {
 public:
  virtual ~Timeline();
  /// Which process made it. A child of `fork` asks nothing of it.
  const base::Origin& origin() const noexcept { return origin_; }
  /// The value reached so far. Never blocks.
  virtual std::uint64_t reached() noexcept = 0;
  /// Waits until `value` is reached. A value nobody has submitted yet may be waited for.
  /// Errors: timed_out; or the failure this timeline carries, once `value` can no longer be reached.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Moves the value up from the host.
  /// Errors: invalid_argument (not larger than the value it has; or a lane moves this one), device_lost.
  virtual Result<void> signal(std::uint64_t value) = 0;
  /// The device whose lanes can wait for this timeline.
  virtual const DeviceBase* owner() const noexcept = 0;
  /// Whether others than wye move it: then a submission may signal it, and a wait for it holds the device's queue until
  /// they have.
  virtual bool is_foreign() const noexcept { return false; }
  /// Of a foreign timeline that two devices of wye's have: what they promised each other on it. Null of all others.
  virtual Turns* turns() noexcept { return nullptr; }

 private:
  const base::Origin origin_{};
};

/// What a timeline that has reached `reached` answers to `value`, which is not larger.
Error not_larger(std::uint64_t value, std::uint64_t reached);

/// A value of a timeline.
struct TimelinePoint {
  std::shared_ptr<Timeline> timeline;
  std::uint64_t value = 0;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
