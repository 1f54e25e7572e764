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

Result<void> CudaTimeline::wait(std::uint64_t value, Instant until) {
  if (const Error* lost = device_->lost()) return *lost;
  if (original_) return original_->wait(value, until);
  if (seen() >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = device_->queue().wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (by_ == MovedBy::host) return {};
  if (const Mark mark = device_->queue().mark_of(*this, value)) {
    const CurrentContext current(*device_);
    if (!current) return current.error();
    CUresult r = CUDA_ERROR_NOT_READY;
    const char* api = "cuEventQuery";
    const auto has_come = [&] {
      r = device_->cu.EventQuery(mark.event->handle);
      return r != CUDA_ERROR_NOT_READY;
    };
    Instant now = Clock::steady().now();
    bool come = now < until ? base::seen_before_parking(has_come, std::min<Duration>(sleeping, until - now))
                            : has_come();
    for (; !come && now < until && !device_->lost(); now = Clock::steady().now()) {
      api = "cuEventSynchronize";
      const Instant rest = device_->sleep_until(until);
      if (rest == Instant::max()) {
        r = device_->cu.EventSynchronize(mark.event->handle);
      } else {
        auto heard = device_->waiter().wait(id_, mark.value, mark.event, rest);
        if (!heard) return std::move(heard).error();
        r = heard->value_or(r);
      }
      come = r != CUDA_ERROR_NOT_READY;
    }
    if (r == CUDA_SUCCESS)
      raise(mark.value);
    else if (r != CUDA_ERROR_NOT_READY)
      return device_->failed(r, api, base::text("Waiting for device '{}' failed.", device_->info().id));
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
