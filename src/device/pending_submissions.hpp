#pragma once
/// Submissions that are not submitted to the driver yet, because they wait for values that no lane
/// has submitted.
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

namespace wye::inline v0::device {

/// A submission as PendingSubmissions sees it. Backends derive from it and add the driver's
/// commands.
struct PendingSubmission {
  std::uint64_t value = 0;  ///< reached by the lane's timeline when it completes
  std::vector<TimelinePoint> waits;
};

/// A lane as PendingSubmissions sees it.
class SubmittingLane {
 public:
  SubmittingLane() = default;
  SubmittingLane(const SubmittingLane&) = delete;
  virtual ~SubmittingLane() = default;
  /// Submits to the driver. All values that the submission waits for were submitted before. No lock
  /// is held.
  virtual Result<void> submit_to_driver(PendingSubmission& submission) = 0;
  virtual ScheduledTimeline& lane_timeline() const noexcept = 0;

 private:
  friend class PendingSubmissions;
  // Under the lock of PendingSubmissions:
  std::deque<PendingSubmission*> pending_;
  bool is_submitting_ = false;  // a thread submits pending work of this lane to the driver
};

/// Keeps the order between lanes. A submission to a driver can wait only for work that the driver
/// already has. Otherwise an in-order queue would block all of its lanes, and a stream would not
/// wait at all. So a submission that waits for a value that no lane has submitted, or that the host
/// signals, stays pending. The thread that submits or signals the value then submits it to the
/// driver.
/// Threads: thread-safe. The lock is not held while the driver is called.
class PendingSubmissions {
 public:
  PendingSubmissions(DeviceBase& device, TimelineWaiter& waiter);

  /// Returns whether the thread of `lane` may submit to the driver now, with these waits.
  /// Errors: the failure of the device, of the lane, or of a lane that it waits for.
  Result<bool> ready(const SubmittingLane& lane, std::span<const TimelinePoint> waits);
  /// Notes that the thread of `lane` submitted `value` to the driver, and submits the work that was
  /// pending for it.
  void submitted(SubmittingLane& lane, std::uint64_t value);
  /// Adds a pending submission, and submits it if it has become ready. `lane` and `submission` stay
  /// valid until then, or until `close`.
  /// Errors: the failure of the device or the lane; then the submission is not added.
  Result<void> add(SubmittingLane& lane, PendingSubmission& submission);
  /// Fails a lane: it submits no more values.
  void fail(SubmittingLane& lane, Error error);
  /// Signals a timeline from the host, and submits the work that was pending for it.
  Result<void> signal(ScheduledTimeline& timeline, std::uint64_t value);
  /// Waits until `value` was submitted to the driver, or was reached if the host signals the
  /// timeline.
  Result<void> wait_scheduled(ScheduledTimeline& timeline, std::uint64_t value, Instant until);
  /// Ends a lane after all threads have stopped submitting its work.
  void close(SubmittingLane& lane);
  /// Drops all pending submissions and wakes all waiters: the device is lost.
  void drop_all() noexcept;
  TimelineWaiter& waiter() const noexcept { return waiter_; }

 private:
  static bool is_scheduled(std::span<const TimelinePoint> waits);
  static const Error* failure_among(std::span<const TimelinePoint> waits);
  static Error in_context(const Error& failure) noexcept;
  Result<void> submit_to_driver(SubmittingLane& lane, PendingSubmission& submission) noexcept;
  void schedule(ScheduledTimeline& timeline, std::uint64_t value);
  void fail_locked(SubmittingLane& lane, Error error);
  /// Submits all work that has become ready to the driver. Releases `lock` during each submission.
  void advance(base::Lock& lock);

  DeviceBase& device_;
  TimelineWaiter& waiter_;
  std::mutex mutex_;
  base::Gate changed_;
  std::vector<SubmittingLane*> lanes_;  // with pending submissions
  // Constructed in advance, while there is memory:
  const Error ended_;
  const Error no_memory_;
};

}  // namespace wye::device
