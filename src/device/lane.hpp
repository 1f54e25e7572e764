#pragma once
/// Lanes as other rooms use them.
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

namespace wye::inline v0::device {

/// Observes the calls of lanes, on the threads that make them.
class LaneObserver {
 public:
  virtual ~LaneObserver() = default;
  /// The device has accepted a submission of the lane.
  virtual void submitted() noexcept = 0;
  /// A wait for the lane has returned.
  virtual void waited() noexcept = 0;
};

/// One lane of a device with its open recording. Calls return nothing: `wait` and every later
/// `wait` return the first failure.
/// Threads: one thread at a time.
class Lane {
 public:
  /// Creates a lane of `device` that checks its submissions (`checked`). Other rooms create lanes
  /// only here.
  /// Errors: those of `DeviceBase::create_lane`.
  static Result<std::unique_ptr<Lane>> create(DeviceBase& device);
  explicit Lane(std::unique_ptr<LaneBase> base);
  ~Lane();  ///< drops commands that were not submitted; waits for submissions in flight

  /// Copies `source` into `target`. The caller may reuse `source` after the next `submit`.
  void upload(std::span<const std::byte> source, const BufferRange& target);
  /// Copies `source` into `target`, which is complete when `wait` returns success.
  void download(const BufferRange& source, std::span<std::byte> target);
  void copy(const BufferRange& source, const BufferRange& target);
  void fill(const BufferRange& target, std::uint32_t pattern);
  void dispatch(const std::shared_ptr<ExecutableBase>& executable, const Arguments& arguments, Extent3 items);
  /// Take the time around the commands between them, for `StampsBase::read` after their submission
  /// has completed. Both are in one submission: `wait_for`, `signal` and `submit` end it. Null
  /// stamps have no effect.
  void stamp_begin(const std::shared_ptr<StampsBase>& stamps);
  void stamp_end(const std::shared_ptr<StampsBase>& stamps);
  /// Returns the stamps of this lane, for one submission at a time. They are created at the first
  /// call, and end with the lane. Null: the device has no clock, or could not create them then.
  const std::shared_ptr<StampsBase>& own_stamps() noexcept;
  /// Releases shared memory to another driver, with all writes of this lane, until `acquire`. The
  /// caller orders the work of the two devices.
  void release(const BufferRange& memory);
  void acquire(const BufferRange& memory);
  /// Delays commands that are recorded after this until `point` is reached.
  void wait_for(TimelinePoint point);
  /// Submits, and signals a foreign timeline when all commands recorded so far have completed.
  void signal(const TimelinePoint& point);
  /// Fails the lane with an error of the caller, unless it has failed before.
  void fail(Error error);

  /// Submits the recorded commands, if there are any. Returns the point that their completion
  /// reaches.
  TimelinePoint submit(const StopToken& stop = {}, bool caller_waits = false);
  /// Submits the recorded commands, and then `sequence`.
  TimelinePoint submit(SequenceState& sequence, const StopToken& stop = {}, bool caller_waits = false);
  /// Submits the recorded commands, and waits for all submissions.
  /// Errors: timed_out (the lane stays usable); or the first failure of this lane.
  Result<void> wait(Instant until, const StopToken& stop = {});
  /// Returns the point that the completion of all submissions reaches.
  TimelinePoint last() const noexcept { return {base_->timeline(), last_}; }
  /// Returns whether all submissions have completed. Waits for that until `until`; by default it
  /// does not wait.
  bool idle(Instant until = Instant::min()) noexcept;
  const std::shared_ptr<Timeline>& timeline() const noexcept { return base_->timeline(); }
  /// Drops all that its user has left behind: commands and waits that were not submitted, and
  /// downloads that no successful `wait` followed. Work in flight continues. Buffers of completed
  /// submissions are released.
  void discard() noexcept;

  /// Returns whether submissions keep buffers, also those that have completed since the last `wait`
  /// or `discard`.
  bool keeps_buffers() const noexcept { return collected_ < in_flight_.size(); }
  const std::optional<Error>& failure() const noexcept { return failure_; }
  /// Sets the observer, which outlives the lane.
  void set_observer(LaneObserver* observer) noexcept { observer_ = observer; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return base_->device(); }

 private:
  bool ended() const noexcept { return failure_ || origin_.is_inherited(); }
  Recording* open();
  /// Submits the recorded commands, if there are any.
  void submit_recorded(const StopToken& stop, bool caller_waits);
  /// Submits the open recording with the waits of `wait_for`.
  void submit_open(Submission submission);
  void submit_to_base(const Submission& submission);
  void collect();
  std::unique_ptr<LaneBase> base_;
  LaneObserver* observer_ = nullptr;
  std::shared_ptr<Recording> open_;
  std::vector<std::shared_ptr<Recording>> in_flight_;  // in submission order; the first `collected_` are null
  std::size_t collected_ = 0;
  std::vector<std::shared_ptr<Recording>> idle_;
  std::vector<TimelinePoint> waits_;
  std::vector<TimelinePoint> foreign_waits_;  // points that other devices signal, since the last wait
  std::uint64_t last_ = 0;                    // value of the last submission
  std::uint64_t waited_ = 0;                  // value of the last submission at the last successful wait
  std::shared_ptr<StampsBase> own_stamps_;
  bool has_tried_stamps_ = false;
  std::optional<Error> failure_;
  const Error no_memory_{Errc::out_of_memory,
                         "The host has no memory left for a submission."};  // constructed in advance
  const base::Origin origin_;                                               // a child of fork submits nothing
};

}  // namespace wye::device
