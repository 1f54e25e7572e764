#pragma once
/// What the rest of wye drives a lane through: records, submits, remembers the first failure.
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

/// One lane of a device with its open recording. Calls return nothing: the first failure sticks and comes
/// out of `wait`, for ever.
/// Threads: one thread at a time.
class Lane {
 public:
  explicit Lane(std::unique_ptr<LaneBase> base);
  ~Lane();  ///< what was recorded and not submitted is dropped; what is in flight is waited for

  /// Copies `source` into `target`; `source` may be reused after the next `submit`.
  void upload(std::span<const std::byte> source, const BufferRange& target);
  /// Copies `source` into `target`, which is written by the time `wait` has returned success.
  void download(const BufferRange& source, std::span<std::byte> target);
  void copy(const BufferRange& source, const BufferRange& target);
  void fill(const BufferRange& target, std::uint32_t pattern);
  void dispatch(const std::shared_ptr<ExecutableBase>& executable, const Arguments& arguments, Extent3 items);
  /// Leaves memory that another driver has too to that driver, with all that was done to it here, until `acquire`. Who orders
  /// the two devices says when that may use it.
  void release(const BufferRange& memory);
  void acquire(const BufferRange& memory);
  /// What is recorded after this runs only when `point` is reached.
  void wait_for(TimelinePoint point);
  /// Raises a timeline that others wait for once all that was recorded so far is done, and submits it.
  void signal(const TimelinePoint& point);
  /// Makes an error of the caller's stick.
  void fail(Error error);

  /// Hands what was recorded to the device. Without effect where nothing was.
  /// Returns the point that its end will reach.
  TimelinePoint submit(const StopToken& stop = {}, bool caller_waits = false);
  /// Submits, and then all of `sequence`.
  TimelinePoint submit(SequenceState& sequence);
  /// Submits, and waits for all of it.
  /// Errors: timed_out (the lane is still good); or the first failure of this lane.
  Result<void> wait(Instant until, const StopToken& stop = {});
  /// Whether all that was submitted has finished. Waits for that until `until`; by default it does not wait. Submits nothing.
  bool idle(Instant until = Instant::min()) noexcept;
  void abandon() noexcept { base_->abandon(); }  ///< downloads still outstanding are not written any more

  const std::optional<Error>& failure() const noexcept { return failure_; }
  const std::shared_ptr<DeviceBase>& device() const noexcept { return base_->device(); }

 private:
  bool ended() const noexcept { return failure_ || origin_.is_inherited(); }
  Recording* open();
  /// What was recorded, if anything was.
  void give_recorded(const StopToken& stop, bool caller_waits);
  /// The open recording, with the waits there are.
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
