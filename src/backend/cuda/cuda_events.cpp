#include "backend/cuda/cuda_events.hpp"

#include "backend/cuda/cuda_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

Result<EventHandle> CudaEvents::take(Idle& idle) {
  CUevent event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle.events.empty()) {
      event = idle.events.back();
      idle.events.pop_back();
    } else {
      idle.events.reserve(++idle.count);  // give_back() must not allocate
    }
  }
  if (!event) {
    const CreationContext current(device_);
    const CUresult r = current ? device_.cu.EventCreate(&event, idle.flags) : CUDA_SUCCESS;
    if (!current || r != CUDA_SUCCESS) {
      {
        const std::lock_guard lock(mutex_);
        --idle.count;
      }
      return current ? device_.failed(r, "cuEventCreate",
                                      base::text("Device '{}' cannot create an event.", device_.info().id))
                     : current.error();
    }
  }
  // Every holder of an event (a lane, a waiting thread, stamps) keeps the device.
  return EventHandle(new CudaEvent{event}, [this, &idle](CudaEvent* given) {
    give_back(idle, given->handle);
    delete given;
  });
}

void CudaEvents::give_back(Idle& idle, CUevent event) noexcept {
  const std::lock_guard lock(mutex_);
  idle.events.push_back(event);
}

Result<CUevent> CudaEvents::origin() {
  {
    const std::lock_guard lock(mutex_);
    if (origin_) return origin_->handle;
  }
  auto event = take_timed();
  if (!event) return std::move(event).error();
  const auto refused = [&](CUresult r, const char* api) {
    return device_.failed(r, api, base::text("Device '{}' cannot start its clock.", device_.info().id));
  };
  const CUevent handle = (*event)->handle;
  if (const CUresult r = device_.cu.EventRecord(handle, device_.memory_stream()); r != CUDA_SUCCESS)
    return refused(r, "cuEventRecord");
  if (const CUresult r = device_.cu.EventSynchronize(handle); r != CUDA_SUCCESS)
    return refused(r, "cuEventSynchronize");
  const std::lock_guard lock(mutex_);
  if (!origin_) origin_.swap(*event);  // `event` is freed without the lock, if another thread was first
  return origin_->handle;
}

void CudaEvents::destroy() noexcept {
  origin_.reset();
  for (const Idle* idle : {&untimed_, &timed_})
    for (const CUevent event : idle->events)
      device_.lose_if_fatal(device_.cu.EventDestroy(event), "cuEventDestroy");
}

}  // namespace wye::cuda
