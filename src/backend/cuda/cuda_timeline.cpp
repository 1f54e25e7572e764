#include "backend/cuda/cuda_timeline.hpp"

#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

Result<std::shared_ptr<CudaTimeline>> CudaTimeline::create(std::shared_ptr<CudaDevice> device, MovedBy by) {
  if (const Error* lost = device->lost()) return *lost;
  std::shared_ptr<CudaTimeline> timeline(new CudaTimeline(std::move(device), by));
  if (by == MovedBy::host) return timeline;
  CudaDevice& owner = *timeline->device_;
  const CurrentContext current(owner);
  if (!current) return current.error();
  auto word = owner.take_word();
  if (!word) return std::move(word).error();
  timeline->word_ = *word;
  return timeline;
}

CudaTimeline::~CudaTimeline() {
  if (word_.host) device_->give_word(word_);
  if (!semaphore_ || device_->lost()) return;
  if (const CurrentContext current(*device_); current)
    device_->heard(device_->cu.DestroyExternalSemaphore(semaphore_), "cuDestroyExternalSemaphore");
}

std::uint64_t CudaTimeline::reached() noexcept {
  if (original_) return original_->reached();
  std::uint64_t seen = reached_.load(std::memory_order_acquire);
  if (by_ == MovedBy::others && seen == 0 && !device_->lost()) {
    query();
    return reached_.load(std::memory_order_acquire);
  }
  if (!word_.host || device_->lost()) return seen;
  const std::uint64_t now = std::atomic_ref(*word_.host).load(std::memory_order_acquire);
  while (seen < now && !reached_.compare_exchange_weak(seen, now, std::memory_order_acq_rel)) {
  }
  return reached_.load(std::memory_order_acquire);
}

Result<void> CudaTimeline::wait(std::uint64_t value, Instant until) {
  if (const Error* lost = device_->lost()) return *lost;
  if (original_) return original_->wait(value, until);
  if (reached() >= value) return {};
  if (scheduled() < value)
    if (auto scheduled = device_->queue().wait_scheduled(*this, value, until); !scheduled) return scheduled;
  if (by_ == MovedBy::host) return {};
  const auto too_late = [&] {
    return Error(Errc::timed_out, base::text("Device '{}' has not reached the value waited for ({}) in time.",
                                             device_->info().id, value));
  };
  const EventHandle event = device_->queue().event_of(*this, value);
  if (event) {
    CUresult r = CUDA_SUCCESS;
    if (until == Instant::max()) {
      const CurrentContext current(*device_);
      if (!current) return current.error();
      r = device_->cu.EventSynchronize(event->handle);
    } else {
      if (until <= Clock::steady().now()) return too_late();
      auto heard = device_->waiter().wait(event, until);
      if (!heard) return std::move(heard).error();
      if (*heard) r = **heard;
    }
    if (r != CUDA_SUCCESS)
      return device_->failed(r, "cuEventSynchronize",
                             base::text("Waiting for device '{}' failed.", device_->info().id));
  }
  // Somebody may have seen the device lost meanwhile: then nothing that was computed is to be trusted.
  if (const Error* lost = device_->lost()) return *lost;
  return reached() >= value ? Result<void>() : too_late();
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
