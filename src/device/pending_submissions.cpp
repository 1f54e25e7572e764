#include "device/pending_submissions.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "device/device.hpp"

namespace wye::inline v0::device {
namespace {

/// The cast is valid: the checked decorator refuses timelines of other devices.
ScheduledTimeline& timeline_of(const TimelinePoint& point) {
  return static_cast<ScheduledTimeline&>(*point.timeline);
}

}  // namespace

PendingSubmissions::PendingSubmissions(DeviceBase& device, TimelineWaiter& waiter)
    : device_(device),
      waiter_(waiter),
      ended_(Errc::closed, base::text("A lane of device '{}' has ended.", device.info().id)),
      no_memory_(
          Errc::out_of_memory,
          base::text("The host has no memory left for a submission to device '{}'.", device.info().id)) {}

Error PendingSubmissions::in_context(const Error& failure) noexcept {
  try {
    return failure.with_context("while waiting for another lane");
  } catch (...) {  // no memory for the context
    return failure;
  }
}

/// Catches exceptions: one would leave `is_submitting_` set for ever.
Result<void> PendingSubmissions::submit_to_driver(SubmittingLane& lane,
                                                  PendingSubmission& submission) noexcept {
  try {
    return lane.submit_to_driver(submission);
  } catch (...) {
    return no_memory_;
  }
}

bool PendingSubmissions::is_scheduled(std::span<const TimelinePoint> waits) {
  return std::all_of(waits.begin(), waits.end(), [](const TimelinePoint& point) {
    return timeline_of(point).scheduled() >= point.value;
  });
}

/// Returns the failure that prevents one of `waits`, or null.
const Error* PendingSubmissions::failure_among(std::span<const TimelinePoint> waits) {
  for (const TimelinePoint& point : waits)
    if (const ScheduledTimeline& t = timeline_of(point); t.failure_ && t.scheduled() < point.value)
      return &*t.failure_;
  return nullptr;
}

Result<bool> PendingSubmissions::ready(const SubmittingLane& lane, std::span<const TimelinePoint> waits) {
  const base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (const auto& failure = lane.lane_timeline().failure_) return *failure;
  if (const Error* failure = failure_among(waits)) return in_context(*failure);
  return !lane.is_submitting_ && lane.pending_.empty() && is_scheduled(waits);
}

void PendingSubmissions::schedule(ScheduledTimeline& timeline, std::uint64_t value) {
  timeline.scheduled_.store(value);
  changed_.wake_all();
  if (timeline.first_callback() <= value) waiter_.notify();
}

void PendingSubmissions::submitted(SubmittingLane& lane, std::uint64_t value) {
  base::Lock lock(mutex_);
  schedule(lane.lane_timeline(), value);
  if (!lanes_.empty()) advance(lock);
}

Result<void> PendingSubmissions::add(SubmittingLane& lane, PendingSubmission& submission) {
  base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (const auto& failure = lane.lane_timeline().failure_) return *failure;
  if (std::find(lanes_.begin(), lanes_.end(), &lane) == lanes_.end()) lanes_.push_back(&lane);
  lane.pending_.push_back(&submission);
  advance(lock);
  return {};
}

void PendingSubmissions::advance(base::Lock& lock) {
  for (std::size_t i = 0; i < lanes_.size();) {
    SubmittingLane& lane = *lanes_[i];
    if (lane.pending_.empty()) {
      lanes_.erase(lanes_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    PendingSubmission& submission = *lane.pending_.front();
    if (lane.is_submitting_) {
      ++i;  // its thread calls `advance` again
    } else if (const Error* failure = failure_among(submission.waits)) {
      fail_locked(lane, in_context(*failure));
      i = 0;
    } else if (is_scheduled(submission.waits)) {
      const std::uint64_t value = submission.value;
      lane.pending_.pop_front();
      lane.is_submitting_ = true;
      lock.unlock();
      auto submitted = submit_to_driver(lane, submission);
      lock.lock();
      lane.is_submitting_ = false;
      if (submitted)
        schedule(lane.lane_timeline(), value);
      else
        fail_locked(lane, std::move(submitted).error());
      i = 0;  // another lane may have waited for it
    } else {
      ++i;
    }
  }
}

void PendingSubmissions::fail_locked(SubmittingLane& lane, Error error) {
  ScheduledTimeline& timeline = lane.lane_timeline();
  if (!timeline.failure_) {
    timeline.failure_ = std::move(error);
    timeline.has_failed_.store(true);
  }
  lane.pending_.clear();
  changed_.wake_all();
  if (timeline.first_callback() != ScheduledTimeline::no_value) waiter_.notify();
}

void PendingSubmissions::fail(SubmittingLane& lane, Error error) {
  base::Lock lock(mutex_);
  fail_locked(lane, std::move(error));
  advance(lock);
}

Result<void> PendingSubmissions::signal(ScheduledTimeline& timeline, std::uint64_t value) {
  base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (value <= timeline.scheduled()) return not_larger(value, timeline.scheduled());
  timeline.reached_.store(value);
  schedule(timeline, value);
  advance(lock);
  return {};
}

Result<void> PendingSubmissions::wait_scheduled(ScheduledTimeline& timeline, std::uint64_t value,
                                                Instant until) {
  base::Lock lock(mutex_);
  changed_.wait(lock, until,
                [&] { return timeline.scheduled() >= value || timeline.failure_ || device_.lost(); });
  if (const Error* lost = device_.lost()) return *lost;
  if (timeline.scheduled() >= value) return {};
  if (timeline.failure_) return *timeline.failure_;
  return Error(Errc::timed_out,
               base::text("No submission to device '{}' in time reaches the value waited for ({}).",
                          device_.info().id, value));
}

void PendingSubmissions::close(SubmittingLane& lane) {
  base::Lock lock(mutex_);
  changed_.wait(lock, Instant::max(), [&] { return !lane.is_submitting_; });
  fail_locked(lane, ended_);
  std::erase(lanes_, &lane);
  if (!device_.lost()) advance(lock);
}

void PendingSubmissions::drop_all() noexcept {
  const base::Lock lock(mutex_);
  for (SubmittingLane* lane : lanes_) lane->pending_.clear();
  lanes_.clear();
  changed_.wake_all();
  waiter_.notify();
}

}  // namespace wye::device
