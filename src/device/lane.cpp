#include "device/lane.hpp"

#include <new>
#include <utility>

#include "base/text.hpp"
#include "device/checked.hpp"
#include "device/turns.hpp"

namespace wye {
inline namespace v0 {
namespace device {

Result<std::unique_ptr<Lane>> Lane::create(DeviceBase& device) {
  auto base = device.create_lane();
  if (!base) return std::move(base).error();
  return std::make_unique<Lane>(checked(*std::move(base)));
}

Lane::Lane(std::unique_ptr<LaneBase> base) : base_(std::move(base)) {}

Lane::~Lane() { base_.reset(); }

/// Empties the recordings the device is done with, so that the buffers in them are free.
void Lane::collect() {
  for (; done_ < in_flight_.size() && unused(in_flight_[done_]); ++done_) {
    in_flight_[done_]->clear();
    if (idle_.size() < 16) idle_.push_back(std::move(in_flight_[done_]));
    in_flight_[done_].reset();
  }
  if (done_ * 2 >= in_flight_.size()) {
    in_flight_.erase(in_flight_.begin(), in_flight_.begin() + static_cast<std::ptrdiff_t>(done_));
    done_ = 0;
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

void Lane::wait_for(TimelinePoint point) {
  give_recorded({}, false);
  if (ended()) return;
  if (point.timeline && point.timeline->turns()) promised_.push_back(point);
  waits_.push_back(std::move(point));
}

void Lane::signal(const TimelinePoint& point) {
  if (!open()) return;
  Submission submission;
  submission.signals = std::span(&point, 1);
  give_open(std::move(submission));
}

void Lane::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void Lane::give_recorded(const StopToken& stop, bool caller_waits) {
  if (!open_ || open_->empty() || ended()) return;
  Submission submission;
  submission.stop = stop;
  submission.caller_waits = caller_waits;
  give_open(std::move(submission));
}

TimelinePoint Lane::submit(const StopToken& stop, bool caller_waits) {
  give_recorded(stop, caller_waits);
  return {base_->timeline(), last_};
}

TimelinePoint Lane::submit(SequenceState& sequence) {
  give_recorded({}, false);
  if (!ended()) {
    Submission submission = sequence.submission();
    submission.waits = waits_;
    if (!submission.recording->empty() || !waits_.empty()) give(submission);
  }
  return {base_->timeline(), last_};
}

void Lane::give_open(Submission submission) {
  in_flight_.push_back(open_);  // first: a closed recording must not stay open if there is no memory for it
  open_->close();
  submission.recording = std::exchange(open_, nullptr);
  submission.waits = waits_;
  give(submission);
}

void Lane::give(const Submission& submission) {
  try {
    auto value = base_->submit(submission);
    if (value)
      last_ = *value;
    else
      fail(value.error());
  } catch (const std::bad_alloc&) {
    fail(no_memory_);
  }
  waits_.clear();
}

Result<void> Lane::wait(Instant until, const StopToken& stop) {
  if (const Error* inherited = origin_.error()) return *inherited;
  give_recorded(stop, until == Instant::max());
  // Also after a failure: what was submitted before it may still be using the host's memory.
  if (last_ != 0) {
    auto waited = base_->wait(last_, until);
    if (!waited && waited.error() == Errc::timed_out) return waited;
    if (!waited) fail(waited.error());
  }
  if (waits_.empty()) {  // else some are still to be waited for
    for (const TimelinePoint& point : promised_)
      if (const auto why = point.timeline->turns()->broken(point.value))
        fail(why->with_context(base::text("while '{}' waited for another device", device()->info().id)));
    promised_.clear();
  }
  collect();
  if (failure_) return *failure_;
  return {};
}

bool Lane::idle(Instant until) noexcept {
  if (last_ == 0 || base_->timeline()->reached() >= last_) return true;
  const auto now = base_->timeline()->wait(last_, until);
  return now || now.error() != Errc::timed_out;  // a timeline that failed has nothing left to do
}

}  // namespace device
}  // namespace v0
}  // namespace wye
