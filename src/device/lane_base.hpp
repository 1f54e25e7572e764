#pragma once
/// An ordered lane of a device as a backend implements it.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "device/recording.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// Keeps what a backend made of a recording that is submitted again and again: a driver's graph, a command buffer. It
/// belongs to no lane.
/// Threads: one thread at a time.
class ReplayBase {
 public:
  explicit ReplayBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}
  ReplayBase(const ReplayBase&) = delete;
  virtual ~ReplayBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  std::uint64_t checked = 0;  ///< the revision that the checked decorator has found right

 private:
  std::shared_ptr<DeviceBase> device_;
};

/// How a submission runs.
struct Submission {
  std::shared_ptr<const Recording> recording;  ///< closed; kept by the lane until the device is done with it
  std::span<const TimelinePoint> waits;        ///< on this device; reached before the first command runs
  StopToken stop;                              ///< host functions may look at it
  /// The submitting thread waits next and may run the work itself, even past the deadline of its wait (`stop` bounds that).
  /// Then no other thread is woken.
  bool caller_waits = false;
  /// Keeps what the backend makes of a recording that is submitted again, perhaps with other arguments. It does not change
  /// the result. Null for a recording that is submitted once.
  std::shared_ptr<ReplayBase> replay = nullptr;
  std::span<const TimelinePoint> signals =
      {};  ///< foreign timelines of this device: raised behind the last command
};

/// Orders the work of several lanes. Only CUDA's devices use it.
enum class LanePriority : std::uint8_t { normal, high };

struct LaneOptions {
  LanePriority priority = LanePriority::normal;
};

/// One ordered lane: submissions run one after the other, in the order given.
/// Threads: one thread at a time.
class LaneBase {
 public:
  /// Waits for submissions in flight, unless the device is lost. Abandons downloads that no caller has waited for. Values
  /// that were not submitted can no longer be reached: waits for them return `closed`.
  virtual ~LaneBase();
  /// Submits a closed recording and returns the value of `timeline()` that its completion reaches. Sources of its uploads
  /// have been read when this returns.
  /// Errors: those of the device. Then no command ran, and the lane stays usable unless the error is device_lost.
  virtual Result<std::uint64_t> submit(const Submission& submission) = 0;
  /// Waits until `value` is reached and the downloads of all submissions up to it are in the host's memory.
  /// Errors: timed_out (downloads are not written; wait again), kernel_failed, device_lost. The failure of a submission is
  ///         the error of every later one, too.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Abandons outstanding downloads: their targets are not written any more.
  virtual void abandon() noexcept = 0;
  virtual const std::shared_ptr<Timeline>& timeline() const noexcept = 0;
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }

 protected:
  explicit LaneBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}

 private:
  std::shared_ptr<DeviceBase> device_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
