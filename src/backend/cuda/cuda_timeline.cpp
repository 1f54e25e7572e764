#include "backend/cuda/cuda_timeline.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
CudaTimeline::CudaTimeline(std::shared_ptr<CudaDevice> device, SignaledBy by)
    : ScheduledTimeline(device, device->pending(), by) {}

Result<std::shared_ptr<CudaTimeline>> CudaTimeline::create(std::shared_ptr<CudaDevice> device,
                                                           SignaledBy by) {
  if (const Error* lost = device->lost()) return *lost;
  return base::own(new CudaTimeline(std::move(device), by));
}

CudaTimeline::~CudaTimeline() {
  call_seen();
  CudaDevice& owner = cuda();
  if (!semaphore_ || owner.lost()) return;
  if (const CurrentContext current(owner); current)
    owner.lose_if_fatal(owner.cu.DestroyExternalSemaphore(semaphore_), "cuDestroyExternalSemaphore");
}

void CudaTimeline::mark(std::uint64_t value, EventHandle event) {
  const std::lock_guard lock(marks_mutex_);
  marks_.push_back({value, std::move(event)});
}

Mark CudaTimeline::mark_of(std::uint64_t value) {
  const std::lock_guard lock(marks_mutex_);
  for (const Mark& mark : marks_)
    if (mark.value >= value) return mark;
  return {};
}

Mark CudaTimeline::first_mark() noexcept {
  const std::lock_guard lock(marks_mutex_);
  while (!marks_.empty() && marks_.front().value <= seen()) marks_.pop_front();
  return marks_.empty() ? Mark{} : marks_.front();
}

void CudaTimeline::drop_reached() noexcept { (void)first_mark(); }

std::uint64_t CudaTimeline::reached() noexcept {
  if (original_) return original_->reached();
  if (signaled_by() == SignaledBy::host || seen() >= scheduled() || device_->lost()) return seen();
  const CurrentContext current(cuda());
  if (!current) return seen();
  while (const Mark mark = first_mark()) {
    const CUresult r = cuda().cu.EventQuery(mark.event->handle);
    if (r != CUDA_SUCCESS) {
      if (r != CUDA_ERROR_NOT_READY) cuda().lose_if_fatal(r, "cuEventQuery");
      break;
    }
    raise(mark.value);
  }
  return seen();
}

/// Queries an event for the time `polling`, at least once, and sleeps until it completes if it has
/// not.
CudaTimeline::QueryResult CudaTimeline::query_or_sleep(const Mark& mark, Duration polling, Instant until,
                                                       base::Backoff& backoff) {
  const CurrentContext current(cuda());
  if (!current) return {.result = current.result(), .api = "cuCtxPushCurrent"};
  CUresult r = CUDA_ERROR_NOT_READY;
  const auto has_completed = [&] {
    r = cuda().cu.EventQuery(mark.event->handle);
    if (r == CUDA_ERROR_NOT_READY) backoff.answered();
    return r != CUDA_ERROR_NOT_READY;
  };
  const Instant now = Clock::steady().now();
  const bool completed =
      now < until && polling > Duration::zero()
          ? base::seen_before_parking(has_completed, std::min<Duration>(polling, until - now))
          : has_completed();
  if (completed || Clock::steady().now() >= until || device_->lost())
    return {.result = r, .api = "cuEventQuery"};
  const Instant rest = device_->next_check(until);
  if (rest == Instant::max()) {
    r = cuda().cu.EventSynchronize(mark.event->handle);
  } else {
    const auto result = cuda().waiter().wait(id_, mark.value, mark.event, rest);
    if (!result) return {.result = r, .api = "cuEventQuery"};  // no thread for the wait
    r = result->value_or(r);
  }
  return {.result = r, .api = "cuEventSynchronize", .slept = r == CUDA_ERROR_NOT_READY, .has_slept = true};
}

Result<void> CudaTimeline::wait(std::uint64_t value, Instant until) {
  if (const Error* lost = device_->lost()) return *lost;
  if (original_) return original_->wait(value, until);
  if (seen() >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = pending_.wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (signaled_by() == SignaledBy::host) return {};
  if (const Mark mark = mark_of(value)) {
    base::Backoff backoff;
    const Duration limit = cuda().poll_limit();
    Duration polling = waits_.polling(limit);
    const Instant begin = Clock::steady().now();
    bool has_slept = false;
    for (;;) {
      const QueryResult query = query_or_sleep(mark, polling, until, backoff);
      polling = Duration::zero();  // a repeated wait is long
      has_slept |= query.has_slept;
      if (query.result == CUDA_SUCCESS) {
        raise(mark.value);
        break;
      }
      if (ends_device(query.result)) return cuda().lose(query.result, query.api);
      if (device_->lost() || Clock::steady().now() >= until) break;
      // A failure that does not end the device does not tell the state of the event.
      if (query.slept) continue;
      if (!backoff.sleep(until))
        return failure(
            query.result, query.api,
            base::text(
                "The driver of device '{}' has not answered for {} s whether timeline value {} is reached. "
                "The device may still be at work.",
                device_->info().id, base::Backoff::limit / std::chrono::seconds(1), value));
    }
    if (begin < until) waits_.add(Clock::steady().now() - begin, has_slept, limit);
  }
  // Another thread may have found the device lost, which makes every result unreliable.
  if (const Error* lost = device_->lost()) return *lost;
  if (seen() >= value) return {};
  return Error(Errc::timed_out,
               base::text("Device '{}' has not reached timeline value {} before the deadline.",
                          device_->info().id, value));
}

}  // namespace wye::cuda
