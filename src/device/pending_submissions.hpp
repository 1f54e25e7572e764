#pragma once
/// Submissions that a device was not given yet, because they wait for values that no lane has submitted.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "base/gate.hpp"
#include "device/scheduled_timeline.hpp"
#include "device/timeline.hpp"
#include "device/timeline_waiter.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// What PendingSubmissions knows of a submission; a backend adds what the driver is given.
struct PendingSubmission {
  std::uint64_t value = 0;  ///< that the lane's timeline reaches with it
  std::vector<TimelinePoint> waits;
};

/// A lane as PendingSubmissions knows it.
class SubmittingLane {
 public:
  SubmittingLane() = default;
  SubmittingLane(const SubmittingLane&) = delete;
  virtual ~SubmittingLane() = default;
  /// Gives a submission to the driver: all values that it waits for were given before. No lock is held.
  virtual Result<void> give(PendingSubmission& submission) = 0;
  virtual ScheduledTimeline& lane_timeline() const noexcept = 0;

 private:
  friend class PendingSubmissions;
  // Under the lock of PendingSubmissions:
  std::deque<PendingSubmission*> pending_;
  bool is_giving_ = false;  // a thread gives the driver a submission that was pending
};

/// Keeps the order between lanes. A driver can let a submission wait only for work that it was given before: a queue that
/// works in order would stop all its lanes otherwise, and a stream would not wait at all. So a submission that waits for a
/// value that no lane has submitted, or that the host signals, stays pending. The thread that submits or signals the value
/// gives it to the driver.
/// Threads: thread-safe. The lock is not held while the driver is called.
class PendingSubmissions {
 public:
  PendingSubmissions(DeviceBase& device, TimelineWaiter& waiter);

  /// Returns whether the thread of `lane` may give a submission with these waits to the driver at once.
  /// Errors: the failure of the device, of the lane, or of a lane that it waits for.
  Result<bool> ready(const SubmittingLane& lane, std::span<const TimelinePoint> waits);
  /// Notes that the thread of `lane` gave the driver a submission, and gives what was pending for that.
  void given(SubmittingLane& lane, std::uint64_t value);
  /// Keeps a submission until it can be given, which may be at once. `lane` and `submission` live until then, or until
  /// `close`.
  /// Errors: the failure of the device or the lane; then the submission is not kept.
  Result<void> add(SubmittingLane& lane, PendingSubmission& submission);
  /// Fails a lane: no more values will come.
  void fail(SubmittingLane& lane, Error error);
  /// Moves a timeline of the host, and gives what was pending for that.
  Result<void> signal(ScheduledTimeline& timeline, std::uint64_t value);
  /// Waits until `value` was given to the driver, or reached if the host moves the timeline.
  Result<void> wait_scheduled(ScheduledTimeline& timeline, std::uint64_t value, Instant until);
  /// Ends a lane, once no thread gives the driver work of it.
  void close(SubmittingLane& lane);
  /// Drops all pending submissions and wakes all waiters: the device is lost.
  void give_up() noexcept;
  TimelineWaiter& waiter() const noexcept { return waiter_; }

 private:
  static bool is_scheduled(std::span<const TimelinePoint> waits);
  static const Error* failure_among(std::span<const TimelinePoint> waits);
  static Error in_context(const Error& failure) noexcept;
  Result<void> give(SubmittingLane& lane, PendingSubmission& submission) noexcept;
  void schedule(ScheduledTimeline& timeline, std::uint64_t value);
  void fail_locked(SubmittingLane& lane, Error error);
  /// Gives the driver all that has become ready. `lock` is released meanwhile.
  void advance(base::Lock& lock);

  DeviceBase& device_;
  TimelineWaiter& waiter_;
  std::mutex mutex_;
  base::Gate changed_;
  std::vector<SubmittingLane*> lanes_;  // with pending submissions
  // Made while there is memory:
  const Error ended_;
  const Error no_memory_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
