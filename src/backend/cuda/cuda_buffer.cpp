#include "backend/cuda/cuda_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/process.hpp"
#include "base/sizes.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

Result<std::shared_ptr<device::BufferBase>> CudaBuffer::create(std::shared_ptr<CudaDevice> device,
                                                               const device::BufferRequest& request) {
  if (const Error* lost = device->lost()) return *lost;
  if (auto fitting = device::fits(request.bytes, device->info()); !fitting) return std::move(fitting).error();
  auto charge = device->charge(request);
  if (!charge) return std::move(charge).error();
  auto buffer = base::make_own<CudaBuffer>(std::move(device), request.bytes, *std::move(charge));
  if (auto taken = buffer->allocate_memory(request); !taken) return std::move(taken).error();
  return std::shared_ptr<device::BufferBase>(std::move(buffer));
}

Result<void> CudaBuffer::allocate_memory(const device::BufferRequest& request) {
  CudaDevice& device = cuda();
  const CurrentContext current(device);
  if (!current) return current.error();
  const auto refused = [&](CUresult r, const char* api) {
    if (r != CUDA_ERROR_OUT_OF_MEMORY)
      return device.failed(
          r, api,
          base::text("Device '{}' cannot allocate a buffer of {}.", device.info().id, to_string(bytes())));
    const MemoryInfo memory = device.memory();
    const base::Sizes size(bytes(), memory.available);
    // The available memory may be large enough, but fragmented.
    return device.failed(
        r, api,
        bytes() > memory.available
            ? base::text("Buffer size ({}) exceeds the available memory of device '{}' ({} of {}).",
                         size(bytes()), device.info().id, size(memory.available), size(memory.total))
            : base::text("Device '{}' has no contiguous memory for a buffer of {} ({} of {} available).",
                         device.info().id, size(bytes()), size(memory.available), size(memory.total)));
  };
  // The driver refuses allocations of no bytes, and clears words.
  const std::size_t size = (std::max<std::size_t>(bytes().count, 16) + 3) / 4 * 4;
  if (request.use == device::MemoryUse::transfer) {
    void* host = nullptr;
    const auto pin = [&] {
      return device.cu.MemHostAlloc(&host, size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    };
    CUresult r = pin();
    if (r == CUDA_ERROR_OUT_OF_MEMORY && device.staging().trim() != Bytes{}) r = pin();
    if (r != CUDA_SUCCESS) return refused(r, "cuMemHostAlloc");
    host_ = static_cast<std::byte*>(host);
    if (!request.is_overwritten) std::memset(host_, 0, size);
    if (r = device.cu.MemHostGetDevicePointer(&address_, host, 0); r != CUDA_SUCCESS)
      return refused(r, "cuMemHostGetDevicePointer");
    return {};
  }
  const auto allocate = [&] {
    return device.cu.MemAllocFromPoolAsync(&address_, size, device.pool().handle(), device.memory_stream());
  };
  CUresult r = allocate();
  // Completes outstanding frees, and returns the unused memory of the pool to the driver.
  if (r == CUDA_ERROR_OUT_OF_MEMORY && device.cu.StreamSynchronize(device.memory_stream()) == CUDA_SUCCESS &&
      device.pool().trim() == CUDA_SUCCESS)
    r = allocate();
  if (r != CUDA_SUCCESS) return address_ = 0, refused(r, "cuMemAllocFromPoolAsync");
  if (!request.is_overwritten)
    if (r = device.cu.MemsetD32Async(address_, 0, size / 4, device.memory_stream()); r != CUDA_SUCCESS)
      return device.failed(
          r, "cuMemsetD32Async",
          base::text("Device '{}' cannot clear a buffer of {}.", device.info().id, to_string(bytes())));
  return device.record_allocation();  // the host does not wait: lanes do
}

CudaBuffer::~CudaBuffer() {
  CudaDevice& device = cuda();
  if (is_borrowed_) {
    if (release_) release_();
    return;
  }
  if (device.lost() || (!host_ && address_ == 0)) return;
  const CurrentContext current(device);
  if (!current) return;
  // The buffer is not in use: recordings in flight hold their buffers.
  if (host_)
    device.lose_if_fatal(device.cu.MemFreeHost(host_), "cuMemFreeHost");
  else
    device.lose_if_fatal(device.cu.MemFreeAsync(address_, device.memory_stream()), "cuMemFreeAsync");
}

}  // namespace wye::cuda
