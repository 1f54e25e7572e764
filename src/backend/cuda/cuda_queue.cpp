#include "backend/cuda/cuda_queue.hpp"

#include <algorithm>
#include <utility>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_stream.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {
namespace {

/// Lanes check that what they wait for is of their device.
CudaTimeline& timeline_of(const device::TimelinePoint& point) {
  return static_cast<CudaTimeline&>(*point.timeline);
}

}  // namespace

bool CudaQueue::scheduled(std::span<const device::TimelinePoint> waits) {
  return std::all_of(waits.begin(), waits.end(), [](const device::TimelinePoint& point) {
    return timeline_of(point).scheduled() >= point.value;
  });
}

/// The failure because of which one of `waits` will never be reached, or null.
const Error* CudaQueue::hopeless(std::span<const device::TimelinePoint> waits) {
  for (const device::TimelinePoint& point : waits)
    if (const CudaTimeline& t = timeline_of(point); t.failure_ && t.scheduled() < point.value)
      return &*t.failure_;
  return nullptr;
}

Result<bool> CudaQueue::ready(const CudaStream& stream, std::span<const device::TimelinePoint> waits) {
  const base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (stream.timeline->failure_) return *stream.timeline->failure_;
  if (const Error* why = hopeless(waits)) return why->with_context("while waiting for another lane");
  drop_reached(*stream.timeline);  // the events are the flights' alone then
  return !stream.giving && stream.parked.empty() && scheduled(waits);
}

void CudaQueue::schedule(CudaStream& stream, const Flight& flight) {
  CudaTimeline& timeline = *stream.timeline;
  timeline.marks_.push_back({flight.value, flight.event});
  timeline.scheduled_.store(flight.value, std::memory_order_release);
  changed_.wake_all();
}

void CudaQueue::given(CudaStream& stream, const Flight& flight) {
  base::Lock lock(mutex_);
  schedule(stream, flight);
  if (!parked_.empty()) advance(lock);
}

Result<void> CudaQueue::park(std::shared_ptr<CudaStream> stream, Flight& flight) {
  base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (stream->timeline->failure_) return *stream->timeline->failure_;
  stream->parked.push_back(&flight);
  if (std::find(parked_.begin(), parked_.end(), stream) == parked_.end())
    parked_.push_back(std::move(stream));
  advance(lock);
  return {};
}

void CudaQueue::advance(base::Lock& lock) {
  for (std::size_t i = 0; i < parked_.size();) {
    const std::shared_ptr<CudaStream> stream = parked_[i];
    if (stream->parked.empty()) {
      parked_.erase(parked_.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    Flight* const flight = stream->parked.front();
    if (stream->giving) {
      ++i;  // whoever gives to it goes on with what is behind
    } else if (const Error* why = hopeless(flight->waits)) {
      fail_locked(*stream, why->with_context("while waiting for another lane"));
      i = 0;
    } else if (scheduled(flight->waits)) {
      stream->parked.pop_front();
      stream->giving = true;
      lock.unlock();
      auto done = stream->give(*flight);
      lock.lock();
      stream->giving = false;
      if (done)
        schedule(*stream, *flight);
      else
        fail_locked(*stream, std::move(done).error());
      i = 0;  // another one may have waited for this one
    } else {
      ++i;
    }
  }
}

void CudaQueue::fail_locked(CudaStream& stream, Error error) {
  if (!stream.timeline->failure_) stream.timeline->failure_ = std::move(error);
  stream.parked.clear();
  changed_.wake_all();
}

void CudaQueue::fail(CudaStream& stream, Error error) {
  base::Lock lock(mutex_);
  fail_locked(stream, std::move(error));
  advance(lock);
}

Result<void> CudaQueue::signal(CudaTimeline& timeline, std::uint64_t value) {
  base::Lock lock(mutex_);
  if (const Error* lost = device_.lost()) return *lost;
  if (value <= timeline.scheduled()) return device::not_larger(value, timeline.scheduled());
  timeline.reached_.store(value, std::memory_order_release);
  timeline.scheduled_.store(value, std::memory_order_release);
  changed_.wake_all();
  advance(lock);
  return {};
}

Result<void> CudaQueue::wait_scheduled(CudaTimeline& timeline, std::uint64_t value, Instant until) {
  base::Lock lock(mutex_);
  changed_.wait(lock, until,
                [&] { return timeline.scheduled() >= value || timeline.failure_ || device_.lost(); });
  if (const Error* lost = device_.lost()) return *lost;
  if (timeline.scheduled() >= value) return {};
  if (timeline.failure_) return *timeline.failure_;
  return Error(Errc::timed_out,
               base::text("Nothing that reaches the value waited for ({}) was given to device '{}' in time.",
                          value, device_.info().id));
}

Mark CudaQueue::mark_of(CudaTimeline& timeline, std::uint64_t value) {
  const base::Lock lock(mutex_);
  for (const Mark& mark : timeline.marks_)
    if (mark.value >= value) return mark;
  return {};
}

Mark CudaQueue::first_mark(CudaTimeline& timeline) noexcept {
  const base::Lock lock(mutex_);
  drop_reached(timeline);
  return timeline.marks_.empty() ? Mark{} : timeline.marks_.front();
}

void CudaQueue::drop_reached(CudaTimeline& timeline) noexcept {
  while (!timeline.marks_.empty() && timeline.marks_.front().value <= timeline.seen())
    timeline.marks_.pop_front();
}

void CudaQueue::close(CudaStream& stream) {
  base::Lock lock(mutex_);
  changed_.wait(lock, Instant::max(), [&] { return !stream.giving; });
  fail_locked(stream, Error(Errc::closed, base::text("A lane of device '{}' has ended.", device_.info().id)));
  if (!device_.lost()) advance(lock);
}

void CudaQueue::give_up() noexcept {
  std::vector<std::shared_ptr<CudaStream>> gone;  // ends after the lock
  const base::Lock lock(mutex_);
  for (const auto& stream : parked_) stream->parked.clear();
  gone.swap(parked_);
  changed_.wake_all();
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
