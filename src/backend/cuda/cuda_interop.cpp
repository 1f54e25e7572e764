// Native objects: adopts those of the application, and exposes those of wye.
#include <limits>
#include <utility>

#include "backend/cuda/cuda_buffer.hpp"
#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "base/backoff.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

Result<std::shared_ptr<CudaDevice>> CudaDevice::adopt(std::shared_ptr<CudaDriver> driver,
                                                      const PhysicalDevice& physical, CUcontext context,
                                                      const device::BackendOptions& options) {
  auto device = base::own(new CudaDevice(std::move(driver), physical));
  device->set_options(options);
  device->context_ = context;
  {
    const CurrentContext current(*device);
    if (!current) return current.error();
    CUdevice of = 0;
    if (const CUresult r = device->cu.CtxGetDevice(&of); r != CUDA_SUCCESS)
      return device->failed(
          r, "cuCtxGetDevice",
          base::text("The CUDA context of native device '{}' cannot be used.", physical.info.id));
    if (of != physical.handle)
      return Error(
          Errc::invalid_argument,
          base::text("The CUDA context of native device '{}' belongs to device {}; expected device {}.",
                     physical.info.id, of, physical.handle));
  }
  if (auto furnished = device->create_objects(); !furnished) return std::move(furnished).error();
  return device;
}

NativeDevice CudaDevice::native_device() {
  NativeDevice native{.backend = "cuda"};
  native.physical = static_cast<std::uint64_t>(handle_);
  native.device = number_of(work_context());
  return native;
}

NativeMemory CudaDevice::native_memory(device::BufferBase& buffer) {
  // A stream of the application does not wait for the memory stream, so the allocation must
  // complete here.
  CUresult r = CUDA_ERROR_NOT_READY;
  for (base::Backoff backoff; r != CUDA_SUCCESS && !lost();) {
    if (const CurrentContext current(*this); current) {
      r = cu.StreamSynchronize(memory_stream_);
      lose_if_fatal(r, "cuStreamSynchronize");
    }
    if (r != CUDA_SUCCESS && !backoff.sleep()) break;
  }
  NativeMemory native{.backend = "cuda"};
  native.address = buffer.address();
  native.bytes = buffer.bytes();
  return native;
}

Result<NativePoint> CudaDevice::native_point(device::Timeline&, std::uint64_t) {
  return Error(
      Errc::unsupported,
      base::text("A timeline point of device '{}' has no native object; let a stream follow it instead.",
                 info().id));
}

/// Checks that the application does not capture a stream: an event of wye would invalidate the
/// capture, and one of the stream would make wye's work part of it.
/// Errors: invalid_argument, those of the driver.
Result<void> CudaDevice::check_not_captured(std::uint64_t queue) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (const CUresult r = cu.StreamIsCapturing(handle_of<CUstream>(queue), &status); r != CUDA_SUCCESS)
    return failed(r, "cuStreamIsCapturing",
                  base::text("A stream of the application cannot be used with device '{}'.", info().id));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return base::invalid(base::text(
      "The application captures the stream into a graph. Work of device '{}' cannot be part of that.",
      info().id));
}

Result<void> CudaDevice::follow(std::uint64_t queue, device::Timeline& timeline, std::uint64_t value) {
  auto& point = static_cast<CudaTimeline&>(timeline);
  const CurrentContext current(*this);
  if (!current) return current.error();
  if (auto ok = check_not_captured(queue); !ok) return ok;
  if (const CUexternalSemaphore semaphore = point.semaphore()) {
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS parameters{};
    parameters.params.fence.value = value;
    if (const CUresult r =
            cu.WaitExternalSemaphoresAsync(&semaphore, &parameters, 1, handle_of<CUstream>(queue));
        r != CUDA_SUCCESS)
      return failed(r, "cuWaitExternalSemaphoresAsync",
                    base::text("A stream of the application cannot wait for device '{}'.", info().id));
    return {};
  }
  if (point.reached() >= value) return {};
  const Mark mark = point.mark_of(value);
  if (!mark) {
    if (point.reached() >= value) return {};
    return Error(
        Errc::unavailable,
        base::text("Timeline value {} of device '{}' is not submitted yet, so no stream can follow it.",
                   value, info().id));
  }
  if (const CUresult r =
          cu.StreamWaitEvent(handle_of<CUstream>(queue), mark.event->handle, CU_EVENT_WAIT_DEFAULT);
      r != CUDA_SUCCESS)
    return failed(r, "cuStreamWaitEvent",
                  base::text("A stream of the application cannot wait for device '{}'.", info().id));
  return {};
}

Result<std::shared_ptr<device::Timeline>> CudaDevice::adopt_timeline(const NativePoint& point) {
  if (point.object == 0 && point.queue == 0)
    return Error(Errc::invalid_argument,
                 base::text("A native point for device '{}' has neither an event nor a stream.", info().id));
  if (point.object != 0)
    return std::shared_ptr<device::Timeline>(
        CudaTimeline::adopt(self(), base::make_own<CudaEvent>(CudaEvent{handle_of<CUevent>(point.object)})));
  const CurrentContext current(*this);
  if (!current) return current.error();
  if (auto ok = check_not_captured(point.queue); !ok) return std::move(ok).error();
  auto event = events_.take();
  if (!event) return std::move(event).error();
  if (const CUresult r = cu.EventRecord((*event)->handle, handle_of<CUstream>(point.queue));
      r != CUDA_SUCCESS)
    return failed(r, "cuEventRecord",
                  base::text("Device '{}' cannot wait for a stream of the application.", info().id));
  return std::shared_ptr<device::Timeline>(CudaTimeline::adopt(self(), *std::move(event)));
}

std::shared_ptr<CudaTimeline> CudaTimeline::adopt(std::shared_ptr<CudaDevice> device, EventHandle event) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
  auto timeline = base::own(new CudaTimeline(std::move(device), SignaledBy::others));
  timeline->mark(any, std::move(event));
  return timeline;
}

Result<std::shared_ptr<device::BufferBase>> CudaDevice::adopt_memory(const NativeMemory& memory,
                                                                     Release release) {
  const auto refused = [&](const char* what) {
    return Error(Errc::invalid_argument, base::text("Native memory for device '{}' {}.", info().id, what));
  };
  if (memory.address == 0) return refused("is null");
  if (memory.address > std::numeric_limits<std::uint64_t>::max() - memory.bytes.count)
    return refused("exceeds the address space");
  return CudaBuffer::adopt(self(), memory, std::move(release));
}

std::shared_ptr<device::BufferBase> CudaBuffer::adopt(std::shared_ptr<CudaDevice> device,
                                                      const NativeMemory& memory, Release release) {
  auto buffer = base::make_own<CudaBuffer>(std::move(device), memory.bytes);
  buffer->address_ = memory.address;
  buffer->is_borrowed_ = true;
  buffer->release_ = std::move(release);
  return buffer;
}

}  // namespace wye::cuda
