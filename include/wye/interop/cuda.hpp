#pragma once
/// CUDA's own objects: bring yours, take wye's. Needs the CUDA Toolkit's headers of the program that includes it; nothing is
/// linked. The caller's current context is as it was after every call.
#include <cuda.h>
#include <wye/interop/detail/native.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace wye {
inline namespace v0 {
namespace interop {

/// A device with one of its contexts.
struct CudaDevice {
  CUdevice device = 0;
  CUcontext context = nullptr;
};

/// The host's own context, for `RuntimeOptions::adopt` and `PoolOptions::adopt`. It must outlive all that wye has on it. Of the
/// primary context nothing needs to be brought: wye uses that one anyway.
inline NativeDevice cuda_device(const CudaDevice& host) {
  NativeDevice native{.backend = "cuda"};
  native.physical = static_cast<std::uint64_t>(host.device);
  native.device = detail::number_of(host.context);
  return native;
}

/// What stands behind a device of the backend "cuda".
/// Errors: invalid_argument (another backend's), device_lost.
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

/// What stands behind a buffer.
/// Errors: invalid_argument (another backend's), device_lost.
inline Result<CudaBuffer> cuda_buffer(const Buffer& buffer) {
  auto native = detail::native_memory("cuda", buffer);
  if (!native) return std::move(native).error();
  return CudaBuffer{static_cast<CUdeviceptr>(native->address), native->bytes.count};
}

/// The host's memory as a buffer of T on `device`, without a copy: what kernels of that device can reach. `release` is called
/// once when wye has done with it, and not where this fails.
/// Errors: invalid_argument (null, misaligned, no whole number of T), out_of_memory, device_lost.
template <class T>
Result<Buffer> cuda_buffer(const Device& device, const CudaBuffer& host, Release release = {}) {
  detail::NativeMemory native{.backend = "cuda"};
  native.address = static_cast<std::uint64_t>(host.address);
  native.bytes = Bytes{host.bytes};
  return detail::adopt(device, native, element_type<T>(), sizeof(T), std::move(release));
}

/// An event that the host has recorded, for `Lease::wait_for`: what it marks now. It must outlive the point and the work that
/// waits for it; recorded again it needs another point.
/// Errors: invalid_argument (null, another backend's device), device_lost.
inline Result<SyncPoint> sync_point(const Device& device, CUevent recorded) {
  detail::NativePoint native{.backend = "cuda"};
  native.object = detail::number_of(recorded);
  native.value = 1;
  return detail::adopt(device, native);
}

/// All that the host has given to `stream`, of the device's context, so far; null is the default stream.
/// Errors: as above, and those of the driver.
inline Result<SyncPoint> sync_point(const Device& device, CUstream stream) {
  detail::NativePoint native{.backend = "cuda"};
  native.queue = stream ? detail::number_of(stream) : detail::number_of(CU_STREAM_LEGACY);
  native.value = 1;
  return detail::adopt(device, native);
}

/// Has what the host gives to `stream` from now on wait for `point`, a lane's, on the device.
/// Errors: invalid_argument (another backend's, or empty), unavailable (what reaches it waits for something not submitted yet),
///         device_lost.
inline Result<void> follow(CUstream stream, const SyncPoint& point) {
  return detail::follow("cuda", stream ? detail::number_of(stream) : detail::number_of(CU_STREAM_LEGACY),
                        point);
}

}  // namespace interop
}  // namespace v0
}  // namespace wye
