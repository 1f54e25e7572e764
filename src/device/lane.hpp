#pragma once
/// A lane as other rooms use it: records commands, submits them, keeps the first failure.
#include <wye/base/clock.hpp>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/executable.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"
#include "device/sequence.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// One lane of a device with its open recording. Calls return nothing: `wait` returns the first failure, and returns it for
/// ever.
/// Threads: one thread at a time.
class Lane {
 public:
  /// Creates a lane of `device` whose submissions are checked (`checked`). Other rooms have no other way to a lane.
  /// Errors: those of `DeviceBase::create_lane`.
  static Result<std::unique_ptr<Lane>> create(DeviceBase& device);
  explicit Lane(std::unique_ptr<LaneBase> base);
  ~Lane();  ///< drops recorded commands; waits for submissions in flight

  /// Copies `source` into `target`; `source` may be reused after the next `submit`.
  void upload(std::span<const std::byte> source, const BufferRange& target);
  /// Copies `source` into `target`, which is written by the time `wait` has returned success.
  void download(const BufferRange& source, std::span<std::byte> target);
  void copy(const BufferRange& source, const BufferRange& target);
  void fill(const BufferRange& target, std::uint32_t pattern);
  void dispatch(const std::shared_ptr<ExecutableBase>& executable, const Arguments& arguments, Extent3 items);
  /// Releases shared memory to another driver, with all writes of this lane, until `acquire`. The caller orders the two
  /// devices.
  void release(const BufferRange& memory);
  void acquire(const BufferRange& memory);
  /// Lets commands that are recorded after this run only once `point` is reached.
  void wait_for(TimelinePoint point);
  /// Submits, and signals a foreign timeline once all commands recorded so far have completed.
  void signal(const TimelinePoint& point);
  /// Fails the lane with an error of the caller, unless it has failed.
  void fail(Error error);

  /// Submits the recorded commands, if there are any.
  /// Returns the point that their completion reaches.
  TimelinePoint submit(const StopToken& stop = {}, bool caller_waits = false);
  /// Submits, and then all of `sequence`.
  TimelinePoint submit(SequenceState& sequence);
  /// Submits, and waits for all submissions.
  /// Errors: timed_out (the lane is still good); or the first failure of this lane.
  Result<void> wait(Instant until, const StopToken& stop = {});
  /// Returns whether all submissions have completed. Waits for that until `until`; by default it does not wait.
  bool idle(Instant until = Instant::min()) noexcept;
  void abandon() noexcept { base_->abandon(); }  ///< outstanding downloads are not written any more

  const std::optional<Error>& failure() const noexcept { return failure_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return base_->device(); }

 private:
  bool ended() const noexcept { return failure_ || origin_.is_inherited(); }
  Recording* open();
  /// Submits the recorded commands, if there are any.
  void give_recorded(const StopToken& stop, bool caller_waits);
  /// Submits the open recording with the pending waits.
  void give_open(Submission submission);
  void give(const Submission& submission);
  void collect();
  std::unique_ptr<LaneBase> base_;
  std::shared_ptr<Recording> open_;
  std::vector<std::shared_ptr<Recording>>
      in_flight_;  // in the order of submission; the first `done_` are spent
  std::size_t done_ = 0;
  std::vector<std::shared_ptr<Recording>> idle_;
  std::vector<TimelinePoint> waits_;
  std::vector<TimelinePoint> promised_;  // by other devices, since the last wait
  std::uint64_t last_ = 0;               // value of the last submission
  std::optional<Error> failure_;
  const Error no_memory_{Errc::out_of_memory,
                         "The host has no memory left for a submission."};  // made while there is some
  const base::Origin origin_;  // a child of fork gives nothing to the device
};

}  // namespace device
}  // namespace v0
}  // namespace wye
