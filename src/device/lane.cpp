#include "device/lane.hpp"

#include <new>
#include <utility>

#include "base/cancellation.hpp"
#include "base/text.hpp"
#include "device/checked.hpp"
#include "device/pending_signals.hpp"
#include "device/stamps.hpp"

namespace wye::inline v0::device {

Result<std::unique_ptr<Lane>> Lane::create(DeviceBase& device) {
  auto base = device.create_lane();
  if (!base) return std::move(base).error();
  return std::make_unique<Lane>(checked(*std::move(base)));
}

Lane::Lane(std::unique_ptr<LaneBase> base) : base_(std::move(base)) {}

Lane::~Lane() {
  const std::shared_ptr<Timeline> timeline = base_->timeline();
  base_.reset();
  // Otherwise the device may end on the waiter thread, after the application has dropped its last
  // handle.
  if (timeline && !origin_.is_inherited()) timeline->await_release();
}

/// Clears the recordings of completed submissions, which releases their buffers.
void Lane::collect() {
  if (in_flight_.empty()) return;
  for (; collected_ < in_flight_.size() && unused(in_flight_[collected_]); ++collected_) {
    in_flight_[collected_]->clear();
    if (idle_.size() < 16) idle_.push_back(std::move(in_flight_[collected_]));
    in_flight_[collected_].reset();
  }
  if (collected_ * 2 >= in_flight_.size()) {
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(collected_));
    collected_ = 0;
  }
}

Recording* Lane::open() {
  if (ended()) return nullptr;
  if (!open_) {
    collect();
    if (idle_.empty()) {
      open_ = std::make_shared<Recording>();
    } else {
      open_ = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  return open_.get();
}

void Lane::upload(std::span<const std::byte> source, const BufferRange& target) {
  if (Recording* recording = open()) recording->upload(source, target);
}

void Lane::download(const BufferRange& source, std::span<std::byte> target) {
  if (Recording* recording = open()) recording->download(source, target);
}

void Lane::copy(const BufferRange& source, const BufferRange& target) {
  if (Recording* recording = open()) recording->copy(source, target);
}

void Lane::fill(const BufferRange& target, std::uint32_t pattern) {
  if (Recording* recording = open()) recording->fill(target, pattern);
}

void Lane::release(const BufferRange& memory) {
  if (Recording* recording = open()) recording->release(memory);
}

void Lane::acquire(const BufferRange& memory) {
  if (Recording* recording = open()) recording->acquire(memory);
}

void Lane::dispatch(const std::shared_ptr<ExecutableBase>& executable, const Arguments& arguments,
                    Extent3 items) {
  if (Recording* recording = open()) recording->dispatch(executable, arguments, items);
}

void Lane::stamp_begin(const std::shared_ptr<StampsBase>& stamps) {
  if (Recording* recording = open()) recording->stamp_begin(stamps);
}

void Lane::stamp_end(const std::shared_ptr<StampsBase>& stamps) {
  if (Recording* recording = open()) recording->stamp_end(stamps);
}

const std::shared_ptr<StampsBase>& Lane::own_stamps() noexcept {
  if (ended() || std::exchange(has_tried_stamps_, true)) return own_stamps_;
  try {
    if (auto created = device()->create_stamps()) own_stamps_ = *std::move(created);
  } catch (const std::bad_alloc&) {  // then it has none
  }
  return own_stamps_;
}

void Lane::wait_for(TimelinePoint point) {
  submit_recorded({}, false);
  if (ended()) return;
  if (point.timeline && point.timeline->pending_signals()) foreign_waits_.push_back(point);
  waits_.push_back(std::move(point));
}

void Lane::signal(const TimelinePoint& point) {
  if (!open()) return;
  Submission submission;
  submission.signals = std::span(&point, 1);
  submit_open(std::move(submission));
}

void Lane::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void Lane::submit_recorded(const StopToken& stop, bool caller_waits) {
  if (!open_ || open_->empty() || ended()) return;
  Submission submission;
  submission.stop = stop;
  submission.caller_waits = caller_waits;
  submit_open(std::move(submission));
}

TimelinePoint Lane::submit(const StopToken& stop, bool caller_waits) {
  submit_recorded(stop, caller_waits);
  return {base_->timeline(), last_};
}

TimelinePoint Lane::submit(SequenceState& sequence, const StopToken& stop, bool caller_waits) {
  submit_recorded({}, false);
  if (!ended()) {
    Submission submission = sequence.submission();
    submission.waits = waits_;
    submission.stop = stop;
    submission.caller_waits = caller_waits;
    if (!submission.recording->empty() || !waits_.empty()) submit_to_base(submission);
  }
  return {base_->timeline(), last_};
}

void Lane::submit_open(Submission submission) {
  in_flight_.push_back(open_);  // before `close`: without memory for it the recording stays open
  open_->close();
  submission.recording = std::exchange(open_, nullptr);
  submission.waits = waits_;
  submit_to_base(submission);
}

void Lane::submit_to_base(const Submission& submission) {
  const std::span<const std::shared_ptr<StampsBase>> stamps = submission.recording->stamps();
  for (const auto& one : stamps) one->forget();
  try {
    auto value = base_->submit(submission);
    if (value)
      last_ = *value;
    else
      fail(value.error());
    if (value)
      for (const auto& one : stamps) one->note(last());
  } catch (const std::bad_alloc&) {
    fail(no_memory_);
  }
  waits_.clear();
  if (observer_ && !failure_) observer_->submitted();
}

Result<void> Lane::wait(Instant until, const StopToken& stop) {
  const base::CancellationHeld held;
  if (const Error* inherited = origin_.error()) return *inherited;
  submit_recorded(stop, until == Instant::max());
  // Also after a failure: earlier submissions may still use host memory.
  if (last_ != 0) {
    auto waited = base_->wait(last_, until);
    if (!waited && waited.error() == Errc::timed_out) return waited;
    if (waited)
      waited_ = last_;
    else
      fail(waited.error());
  }
  if (waits_.empty()) {  // otherwise no submission has made these waits yet
    for (const TimelinePoint& point : foreign_waits_)
      if (const auto why = point.timeline->pending_signals()->failure_of(point.value))
        fail(why->with_context(base::text("while '{}' waited for another device", device()->info().id)));
    foreign_waits_.clear();
  }
  collect();
  if (observer_) observer_->waited();
  if (failure_) return *failure_;
  return {};
}

void Lane::discard() noexcept {
  if (open_) open_->clear();
  waits_.clear();
  foreign_waits_.clear();
  if (waited_ == last_) return;
  base_->abandon();
  if (!idle()) return;
  try {  // releases the buffers of completed submissions
    if (base_->wait(last_, Instant::min())) waited_ = last_;
    collect();
  } catch (const std::bad_alloc&) {  // then the next submission releases them
  }
}

bool Lane::idle(Instant until) noexcept {
  Timeline& timeline = *base_->timeline();
  if (last_ == 0 || timeline.is_known(last_)) return true;  // a failed timeline has no work in flight
  if (until == Instant::min()) return false;                // a wait makes an error
  try {
    const auto now = timeline.wait(last_, until);
    return now || now.error() != Errc::timed_out;
  } catch (const std::bad_alloc&) {
    return false;  // the memory was for the error of a value that is not reached
  }
}

}  // namespace wye::device
