#pragma once
/// CUDA: lets wye use contexts, memory and events of the application, and the application use those
/// of wye. Needs CUDA Toolkit headers in the program that includes it; links nothing. Calls do not
/// change the caller's current context.
#include <cuda.h>
#include <wye/interop/detail/native.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace wye::inline v0::interop {

/// A CUdevice and one of its contexts.
struct CudaDevice {
  CUdevice device = 0;
  CUcontext context = nullptr;
};

/// Describes a context of the application for `PoolOptions::adopt`. It must outlive all objects
/// that wye creates on it. The primary context needs no adoption: wye uses it by default.
inline NativeDevice cuda_device(const CudaDevice& host) {
  NativeDevice native{.backend = "cuda"};
  native.physical = static_cast<std::uint64_t>(host.device);
  native.device = detail::number_of(host.context);
  return native;
}

/// Returns the CUDA objects of a device of wye.
/// Errors: invalid_argument (another backend), device_lost.
inline Result<CudaDevice> cuda_device(const Device& device) {
  auto native = detail::native_device("cuda", device);
  if (!native) return std::move(native).error();
  return CudaDevice{static_cast<CUdevice>(native->physical), detail::handle_of<CUcontext>(native->device)};
}

/// Memory of a device.
struct CudaBuffer {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
};

/// Returns the CUDA memory of a buffer.
/// Errors: invalid_argument (another backend), device_lost.
inline Result<CudaBuffer> cuda_buffer(const Buffer& buffer) {
  auto native = detail::native_memory("cuda", buffer);
  if (!native) return std::move(native).error();
  return CudaBuffer{static_cast<CUdeviceptr>(native->address), native->bytes.count};
}

/// Returns a buffer of T over memory of the application that kernels of `device` can access,
/// without a copy. Calls `release` once after the last use; not if it fails.
/// Errors:  invalid_argument (null, misaligned, a size that is not a multiple of T), out_of_memory,
///          device_lost.
template <class T>
Result<Buffer> cuda_buffer(const Device& device, const CudaBuffer& host, Release release = {}) {
  detail::NativeMemory native{.backend = "cuda"};
  native.address = static_cast<std::uint64_t>(host.address);
  native.bytes = Bytes{host.bytes};
  return detail::adopt(device, native, element_type<T>(), sizeof(T), std::move(release));
}

/// Returns a point for an event that the application has recorded, for `Lease::wait_for`. The event
/// must outlive the point and the work that waits for it. If the application records the event
/// again, it needs another point.
/// Errors: invalid_argument (null, a device of another backend), device_lost.
inline Result<SyncPoint> sync_point(const Device& device, CUevent recorded) {
  detail::NativePoint native{.backend = "cuda"};
  native.object = detail::number_of(recorded);
  native.value = 1;
  return detail::adopt(device, native);
}

/// Returns a point after all work that the application has submitted to `stream`, of the device's
/// context; null is the default stream.
/// Errors: invalid_argument (a device of another backend, or a stream that the application captures
///         into a graph), device_lost, those of the driver.
inline Result<SyncPoint> sync_point(const Device& device, CUstream stream) {
  detail::NativePoint native{.backend = "cuda"};
  native.queue = stream ? detail::number_of(stream) : detail::number_of(CU_STREAM_LEGACY);
  native.value = 1;
  return detail::adopt(device, native);
}

/// Makes later work of the application on `stream` wait for `point`, a point of a lane, on the
/// device.
/// Errors: invalid_argument (another backend, empty, or a stream that the application captures),
///         unavailable (the work before `point` waits for work that is not submitted yet),
///         device_lost.
inline Result<void> follow(CUstream stream, const SyncPoint& point) {
  return detail::follow("cuda", stream ? detail::number_of(stream) : detail::number_of(CU_STREAM_LEGACY),
                        point);
}

}  // namespace wye::interop
