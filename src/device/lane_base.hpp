#pragma once
/// An ordered lane of a device as a backend implements it.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>
#include <wye/base/stop.hpp>

#include <cstdint>
#include <memory>
#include <span>

#include "device/recording.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class DeviceBase;

/// What a backend keeps of a recording that is submitted again and again: a driver's graph, a command buffer. It belongs to
/// nobody's lane.
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
  /// The submitting thread waits next and may do the work itself, even past the deadline it waits with (`stop`
  /// bounds that): no other thread needs waking.
  bool caller_waits = false;
  /// The recording will be submitted again, with other arguments perhaps: what is made of it may be kept here. Without
  /// effect on what happens. May be null, as in all submissions that are made once.
  std::shared_ptr<ReplayBase> replay = nullptr;
  std::span<const TimelinePoint> signals =
      {};  ///< foreign timelines of this device: raised behind the last command
};

/// Which lane goes first where a device has work of several. Only CUDA's devices know of it.
enum class LanePriority : std::uint8_t { normal, high };

struct LaneOptions {
  LanePriority priority = LanePriority::normal;
};

/// One ordered lane: submissions run one after the other, in the order given.
/// Threads: one thread at a time.
class LaneBase {
 public:
  /// Waits for what is in flight, but never on a lost device; downloads nobody has waited for are given up. Values that
  /// were not submitted can no longer be reached: who waits for one is answered `closed`.
  virtual ~LaneBase();
  /// Hands a closed recording to the device and returns the value its end will signal on `timeline()`. Sources of its
  /// uploads have been read when this returns.
  /// Errors: whatever stopped it; then nothing of the recording ran and the lane can be used on, unless device_lost.
  virtual Result<std::uint64_t> submit(const Submission& submission) = 0;
  /// Waits for `value` and for the downloads of all submissions up to it to be in the host's memory.
  /// Errors: timed_out (downloads not written; wait again), kernel_failed, device_lost: a failure of a submission is
  ///         also the answer to every later one.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Gives up the downloads that are still outstanding: their targets will not be written any more.
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
