#pragma once
/// An ordered lane of a device as a backend implements it.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "device/recording.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::device {

class DeviceBase;

/// Keeps the driver's form of a recording that is submitted many times: a graph, a command buffer.
/// It belongs to no lane.
/// Threads: one thread at a time.
class ReplayBase {
 public:
  explicit ReplayBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}
  ReplayBase(const ReplayBase&) = delete;
  virtual ~ReplayBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  std::uint64_t checked = 0;  ///< the last revision that passed the checks of the checked decorator

 private:
  std::shared_ptr<DeviceBase> device_;
};

/// One submission to a lane.
struct Submission {
  std::shared_ptr<const Recording>
      recording;                         ///< closed; kept by the lane until the submission has completed
  std::span<const TimelinePoint> waits;  ///< on this device; reached before the first command runs
  StopToken stop;                        ///< passed to host functions
  /// The submitting thread waits next and may run the work itself, even past the deadline of its
  /// wait (`stop` ends it). Then no other thread is woken.
  bool caller_waits = false;
  /// Keeps the driver's form of a recording that is submitted again, perhaps with other arguments.
  /// It does not change the result. Null for a recording that is submitted once.
  std::shared_ptr<ReplayBase> replay = nullptr;
  /// Points of foreign timelines of this device, signaled after the last command.
  std::span<const TimelinePoint> signals = {};
};

/// Orders the work of several lanes. Only CUDA devices use it.
enum class LanePriority : std::uint8_t { normal, high };

struct LaneOptions {
  LanePriority priority = LanePriority::normal;
};

/// One ordered lane: commands execute in submission order. A lane of a backend does not check its
/// submissions: `checked` does (`Lane::create`).
/// Threads: one thread at a time.
class LaneBase {
 public:
  /// Waits for submissions in flight, unless the device is lost. Abandons downloads that no caller
  /// has waited for. Waits for values that were not submitted return `closed`.
  virtual ~LaneBase();
  /// Submits a closed recording and returns the value of `timeline()` that its completion reaches.
  /// The sources of its uploads have been read when this returns. May wait for earlier transfers of
  /// the lane, and deliver them, to reuse memory.
  /// Errors: those of the device. Then no command ran, and the lane stays usable unless the error
  ///         is device_lost.
  virtual Result<std::uint64_t> submit(const Submission& submission) = 0;
  /// Waits until `value` is reached and the downloads of all submissions up to it are in host
  /// memory.
  /// Errors: timed_out (downloads are not written; wait again), kernel_failed, device_lost. Every
  ///         later submission returns the failure of an earlier submission.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Abandons pending downloads: their targets are no longer written.
  virtual void abandon() noexcept = 0;
  virtual const std::shared_ptr<Timeline>& timeline() const noexcept = 0;
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }

 protected:
  explicit LaneBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}

 private:
  std::shared_ptr<DeviceBase> device_;
};

}  // namespace wye::device
