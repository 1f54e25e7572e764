// Memory and timelines that are shared with another driver of the same silicon, as opaque file
// descriptors.
#include <algorithm>
#include <limits>
#include <utility>

#include "backend/cuda/cuda_buffer.hpp"
#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

/// A mapped allocation. The destructor also undoes a part of its creation.
struct MappedMemory {
  explicit MappedMemory(CudaDevice& d) : device(d) {}
  MappedMemory(const MappedMemory&) = delete;
  ~MappedMemory() {
    if (device.lost()) return;
    const CurrentContext current(device);
    if (!current) return;
    const DriverTable& cu = device.cu;
    if (is_mapped) device.lose_if_fatal(cu.MemUnmap(address, size), "cuMemUnmap");
    if (address != 0) device.lose_if_fatal(cu.MemAddressFree(address, size), "cuMemAddressFree");
    if (allocation != 0) device.lose_if_fatal(cu.MemRelease(allocation), "cuMemRelease");
  }
  CudaDevice& device;
  std::size_t size = 0;
  CUmemGenericAllocationHandle allocation = 0;
  CUdeviceptr address = 0;
  bool is_mapped = false;
};

/// Memory of another driver, and its address in this one.
struct OpenedMemory {
  explicit OpenedMemory(CudaDevice& d) : device(d) {}
  OpenedMemory(const OpenedMemory&) = delete;
  ~OpenedMemory() {
    if (device.lost()) return;
    const CurrentContext current(device);
    if (!current) return;
    if (address != 0) device.lose_if_fatal(device.cu.MemFree(address), "cuMemFree");
    if (handle) device.lose_if_fatal(device.cu.DestroyExternalMemory(handle), "cuDestroyExternalMemory");
  }
  CudaDevice& device;
  CUexternalMemory handle = nullptr;
  CUdeviceptr address = 0;
};

/// Returns a buffer over the memory of `held`, which it keeps alive.
template <class Held>
std::shared_ptr<device::BufferBase> buffer_over(std::shared_ptr<CudaDevice> device,
                                                std::shared_ptr<Held> held, Bytes bytes) {
  NativeMemory memory{.backend = "cuda"};
  memory.address = held->address;
  memory.bytes = bytes;
  return CudaBuffer::adopt(std::move(device), memory, [held]() mutable { held.reset(); });
}

}  // namespace

bool CudaDevice::has_attribute(CUdevice_attribute attribute) noexcept {
  int value = 0;
  return cu.DeviceGetAttribute(&value, attribute, handle_) == CUDA_SUCCESS && value != 0;
}

Result<device::SharedBufferBase> CudaDevice::create_shared(Bytes bytes) {
  if (const Error* gone = lost()) return *gone;
  if (auto fits = device::fits(bytes, info()); !fits) return std::move(fits).error();
  if (!has_attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) ||
      !has_attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED))
    return Error(
        Errc::unsupported,
        base::text("The driver of device '{}' cannot export memory as a file descriptor.", info().id));
  const CurrentContext current(*this);
  if (!current) return current.error();
  const auto refused = [&](CUresult r, const char* api) {
    return failed(
        r, api, base::text("Device '{}' cannot allocate shared memory ({} bytes).", info().id, bytes.count));
  };
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = handle_;
  std::size_t unit = 0;
  if (const CUresult r = cu.MemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      r != CUDA_SUCCESS)
    return refused(r, "cuMemGetAllocationGranularity");
  unit = std::max<std::size_t>(unit, 1);
  auto memory = base::make_own<MappedMemory>(*this);
  memory->size = (std::max<std::size_t>(bytes.count, 1) + unit - 1) / unit * unit;
  if (const CUresult r = cu.MemCreate(&memory->allocation, memory->size, &properties, 0); r != CUDA_SUCCESS)
    return memory->allocation = 0, refused(r, "cuMemCreate");
  if (const CUresult r = cu.MemAddressReserve(&memory->address, memory->size, 0, 0, 0); r != CUDA_SUCCESS)
    return memory->address = 0, refused(r, "cuMemAddressReserve");
  if (const CUresult r = cu.MemMap(memory->address, memory->size, 0, memory->allocation, 0);
      r != CUDA_SUCCESS)
    return refused(r, "cuMemMap");
  memory->is_mapped = true;
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (const CUresult r = cu.MemSetAccess(memory->address, memory->size, &access, 1); r != CUDA_SUCCESS)
    return refused(r, "cuMemSetAccess");
  if (const CUresult r = cu.MemsetD32Async(memory->address, 0, memory->size / 4, memory_stream());
      r != CUDA_SUCCESS)
    return refused(r, "cuMemsetD32Async");
  // Lanes of the other driver do not wait for the stream.
  if (const CUresult r = cu.StreamSynchronize(memory_stream()); r != CUDA_SUCCESS)
    return refused(r, "cuStreamSynchronize");
  int file = -1;
  if (const CUresult r = cu.MemExportToShareableHandle(&file, memory->allocation,
                                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      r != CUDA_SUCCESS)
    return refused(r, "cuMemExportToShareableHandle");
  device::SharedBufferBase shared;
  shared.memory.file = base::Descriptor(file);
  shared.memory.allocation = Bytes{memory->size};
  shared.buffer = buffer_over(self(), std::move(memory), bytes);
  return shared;
}

Result<std::shared_ptr<device::BufferBase>> CudaDevice::open_shared(device::SharedMemory& memory,
                                                                    Bytes bytes) {
  if (const Error* gone = lost()) return *gone;
  const CurrentContext current(*this);
  if (!current) return current.error();
  const auto refused = [&](CUresult r, const char* api) {
    return failed(r, api,
                  base::text("Device '{}' cannot import the memory of another driver ({} bytes).", info().id,
                             bytes.count));
  };
  auto opened = base::make_own<OpenedMemory>(*this);
  CUDA_EXTERNAL_MEMORY_HANDLE_DESC description{};
  description.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
  description.handle.fd = memory.file.number();
  description.size = memory.allocation.count;
  description.flags = memory.dedicated ? CUDA_EXTERNAL_MEMORY_DEDICATED : 0u;
  if (const CUresult r = cu.ImportExternalMemory(&opened->handle, &description); r != CUDA_SUCCESS)
    return opened->handle = nullptr, refused(r, "cuImportExternalMemory");
  memory.file.release();  // the driver owns it now
  CUDA_EXTERNAL_MEMORY_BUFFER_DESC part{};
  part.offset = 0;
  part.size = std::max<std::uint64_t>(bytes.count, 1);
  if (const CUresult r = cu.ExternalMemoryGetMappedBuffer(&opened->address, opened->handle, &part);
      r != CUDA_SUCCESS)
    return opened->address = 0, refused(r, "cuExternalMemoryGetMappedBuffer");
  return buffer_over(self(), std::move(opened), bytes);
}

Result<device::SharedTimeline> CudaDevice::create_shared_timeline() {
  return Error(Errc::unsupported,
               base::text("Device '{}' cannot export semaphores; it only imports them.", info().id));
}

Result<std::shared_ptr<device::Timeline>> CudaDevice::open_shared_timeline(device::SharedTimeline& original) {
  if (const Error* gone = lost()) return *gone;
  if (!has_attribute(CU_DEVICE_ATTRIBUTE_TIMELINE_SEMAPHORE_INTEROP_SUPPORTED))
    return Error(Errc::unsupported,
                 base::text("The driver of device '{}' cannot import timeline semaphores.", info().id));
  const CurrentContext current(*this);
  if (!current) return current.error();
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
  description.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
  description.handle.fd = original.file.number();
  CUexternalSemaphore semaphore = nullptr;
  if (const CUresult r = cu.ImportExternalSemaphore(&semaphore, &description); r != CUDA_SUCCESS)
    return failed(r, "cuImportExternalSemaphore",
                  base::text("Device '{}' cannot import the semaphore of another driver.", info().id));
  original.file.release();  // the driver owns it now
  return std::shared_ptr<device::Timeline>(CudaTimeline::open(self(), semaphore, original.timeline));
}

std::shared_ptr<CudaTimeline> CudaTimeline::open(std::shared_ptr<CudaDevice> device,
                                                 CUexternalSemaphore semaphore,
                                                 std::shared_ptr<device::Timeline> original) {
  auto timeline = base::own(new CudaTimeline(std::move(device), SignaledBy::others));
  timeline->semaphore_ = semaphore;
  timeline->original_ = std::move(original);
  return timeline;
}

}  // namespace wye::cuda
