#include "backend/cuda/cuda_timeline.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/gate.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {
namespace {

/// What sleeping in the driver costs, about: an interrupt, and the way back onto a processor.
constexpr Duration sleeping = std::chrono::microseconds(30);

}  // namespace

Result<std::shared_ptr<CudaTimeline>> CudaTimeline::create(std::shared_ptr<CudaDevice> device, MovedBy by) {
  if (const Error* lost = device->lost()) return *lost;
  return base::own(new CudaTimeline(std::move(device), by));
}

CudaTimeline::~CudaTimeline() {
  if (!semaphore_ || device_->lost()) return;
  if (const CurrentContext current(*device_); current)
    device_->heard(device_->cu.DestroyExternalSemaphore(semaphore_), "cuDestroyExternalSemaphore");
}

void CudaTimeline::raise(std::uint64_t value) noexcept {
  std::uint64_t before = seen();
  while (before < value && !reached_.compare_exchange_weak(before, value, std::memory_order_acq_rel)) {
  }
}

std::uint64_t CudaTimeline::reached() noexcept {
  if (original_) return original_->reached();
  if (by_ == MovedBy::host || seen() >= scheduled() || device_->lost()) return seen();
  const CurrentContext current(*device_);
  if (!current) return seen();
  while (const Mark mark = device_->queue().first_mark(*this)) {
    const CUresult r = device_->cu.EventQuery(mark.event->handle);
    if (r != CUDA_SUCCESS) {
      if (r != CUDA_ERROR_NOT_READY) device_->heard(r, "cuEventQuery");
      break;
    }
    raise(mark.value);
  }
  return seen();
}

/// Looks at an event, and sleeps for it if it has not come.
CudaTimeline::Answer CudaTimeline::ask(const Mark& mark, Instant until, base::Backoff& backoff) {
  const CurrentContext current(*device_);
  if (!current) return {.result = current.result(), .api = "cuCtxPushCurrent"};
  CUresult r = CUDA_ERROR_NOT_READY;
  const auto has_come = [&] {
    r = device_->cu.EventQuery(mark.event->handle);
    if (r == CUDA_ERROR_NOT_READY) backoff.answered();
    return r != CUDA_ERROR_NOT_READY;
  };
  const Instant now = Clock::steady().now();
  const bool come = now < until
                        ? base::seen_before_parking(has_come, std::min<Duration>(sleeping, until - now))
                        : has_come();
  if (come || Clock::steady().now() >= until || device_->lost()) return {.result = r, .api = "cuEventQuery"};
  const Instant rest = device_->sleep_until(until);
  if (rest == Instant::max()) {
    r = device_->cu.EventSynchronize(mark.event->handle);
  } else {
    const auto heard = device_->waiter().wait(id_, mark.value, mark.event, rest);
    if (!heard) return {.result = r, .api = "cuEventQuery"};  // no thread to sleep on
    r = heard->value_or(r);
  }
  return {.result = r, .api = "cuEventSynchronize", .slept = r == CUDA_ERROR_NOT_READY};
}

Result<void> CudaTimeline::wait(std::uint64_t value, Instant until) {
  if (const Error* lost = device_->lost()) return *lost;
  if (original_) return original_->wait(value, until);
  if (seen() >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = device_->queue().wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (by_ == MovedBy::host) return {};
  if (const Mark mark = device_->queue().mark_of(*this, value)) {
    base::Backoff backoff;
    for (;;) {
      const Answer said = ask(mark, until, backoff);
      if (said.result == CUDA_SUCCESS) {
        raise(mark.value);
        break;
      }
      if (ends_device(said.result)) return device_->lose(said.result, said.api);
      if (device_->lost() || Clock::steady().now() >= until) break;
      // A failure that does not end the device says nothing about the event.
      if (said.slept) continue;
      if (!backoff.sleep(until))
        return failure(
            said.result, said.api,
            base::text("The driver of device '{}' has not said for {} s whether the value waited for ({}) is "
                       "reached; the device may still be at work.",
                       device_->info().id, base::Backoff::limit / std::chrono::seconds(1), value));
    }
  }
  // Somebody may have seen the device lost meanwhile: then nothing that was computed is to be trusted.
  if (const Error* lost = device_->lost()) return *lost;
  if (seen() >= value) return {};
  return Error(Errc::timed_out, base::text("Device '{}' has not reached the value waited for ({}) in time.",
                                           device_->info().id, value));
}

Result<void> CudaTimeline::signal(std::uint64_t value) {
  if (by_ != MovedBy::host)
    return Error(
        Errc::invalid_argument,
        base::text("A timeline that device '{}' moves cannot be moved by the host.", device_->info().id));
  return device_->queue().signal(*this, value);
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
