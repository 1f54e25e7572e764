// Memory and semaphores shared with another driver, as opaque files. Only the driver that created a
// file knows its format. Files of Mesa's lavapipe begin with a page that contains the offset of the
// memory; files created here have the same page, so that lavapipe can open them.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "support/cuda/memory.hpp"
#include "support/cuda/order.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

constexpr std::size_t page = 4096;

/// The header of a file of Mesa 22.3. The offset of the memory is repeated directly before the
/// memory.
struct Header {
  std::uint64_t size = 0;  // of the file
  std::uint64_t offset = page;
  std::uint8_t maker[24] = {};
};
/// The identity in the last header that was read: files created here repeat it.
Header& last_seen() {
  static Header header;
  return header;
}

std::size_t size_of(int file) {
  struct stat about {};
  return fstat(file, &about) == 0 ? static_cast<std::size_t>(about.st_size) : 0;
}

/// Memory without addresses.
struct Chunk {
  static constexpr std::string_view kind = "allocations";
  Chunk(int f, std::size_t s, int d) : file(f), size(s), device(d) {}
  Chunk(const Chunk&) = delete;
  ~Chunk() { close(file); }
  const int file;
  const std::size_t size;
  const int device;
};
Chunk* chunk_of(CUmemGenericAllocationHandle handle) { return find<Chunk>(reinterpret_cast<void*>(handle)); }

CUresult MemGetAllocationGranularity(std::size_t* unit, const CUmemAllocationProp* properties,
                                     CUmemAllocationGranularity_flags) {
  if (properties->type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  *unit = 2u << 20;
  return CUDA_SUCCESS;
}
CUresult MemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                   const CUmemAllocationProp* properties, unsigned long long) {
  if (broken()) return state();
  if (size == 0 || size % (2u << 20) != 0 ||
      properties->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  const int file = memfd_create("wye stand-in", MFD_CLOEXEC);
  Header header = last_seen();
  header.size = page + size;
  if (file < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (ftruncate(file, static_cast<off_t>(header.size)) != 0 ||
      pwrite(file, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      pwrite(file, &header.offset, sizeof(header.offset), page - sizeof(header.offset)) !=
          static_cast<ssize_t>(sizeof(header.offset))) {
    close(file);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* made = nullptr;
  create<Chunk>(&made, file, size, properties->location.id);
  *handle = reinterpret_cast<CUmemGenericAllocationHandle>(made);
  return CUDA_SUCCESS;
}
CUresult MemRelease(CUmemGenericAllocationHandle handle) {
  return destroy<Chunk>(reinterpret_cast<void*>(handle));
}
CUresult MemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle,
                                    CUmemAllocationHandleType type, unsigned long long) {
  Chunk* const chunk = chunk_of(handle);
  if (!chunk || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
  const int number = dup(chunk->file);
  if (number < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(file) = number;
  return CUDA_SUCCESS;
}
CUresult MemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t, CUdeviceptr,
                           unsigned long long) {
  if (broken()) return state();
  void* const reserved = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(reserved);
  const std::lock_guard lock(world().mutex);
  world().reservations[*address] = size;
  return CUDA_SUCCESS;
}
CUresult MemAddressFree(CUdeviceptr address, std::size_t size) {
  const std::lock_guard lock(world().mutex);
  const auto known = world().reservations.find(address);
  if (known == world().reservations.end() || known->second != size || world().memory.count(address) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  world().reservations.erase(known);
  munmap(bytes(address), size);
  return CUDA_SUCCESS;
}
CUresult MemMap(CUdeviceptr address, std::size_t size, std::size_t offset,
                CUmemGenericAllocationHandle handle, unsigned long long) {
  Chunk* const chunk = chunk_of(handle);
  {
    const std::lock_guard lock(world().mutex);
    const auto known = world().reservations.find(address);
    if (!chunk || offset != 0 || size != chunk->size || known == world().reservations.end() ||
        known->second != size)
      return CUDA_ERROR_INVALID_VALUE;
  }
  // Not to be used before access is granted.
  if (mmap(bytes(address), size, PROT_NONE, MAP_SHARED | MAP_FIXED, chunk->file, page) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  return CUDA_SUCCESS;
}
CUresult MemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc* access,
                      std::size_t count) {
  if (count != 1 || access->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE ||
      mprotect(bytes(address), size, PROT_READ | PROT_WRITE) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  poison(bytes(address), size, 0xcb);
  Allocation seen;
  seen.size = size;
  seen.device = access->location.id;
  show(address, seen);
  return CUDA_SUCCESS;
}
CUresult MemUnmap(CUdeviceptr address, std::size_t size) {
  {
    const std::lock_guard lock(world().mutex);
    if (world().memory.erase(address) != 0) world().device_bytes -= size;
  }
  return mmap(bytes(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
              0) == MAP_FAILED
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}

/// Another driver's memory.
struct External {
  static constexpr std::string_view kind = "externals";
  External(int f, std::size_t o, std::size_t s, int d) : file(f), offset(o), size(s), device(d) {}
  External(const External&) = delete;
  ~External() { close(file); }
  const int file;  // owned from now on
  const std::size_t offset;
  const std::size_t size;
  const int device;
};

CUresult ImportExternalMemory(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  WYE_NEEDS_CONTEXT;
  if (description->type != CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD ||
      (description->flags & ~static_cast<unsigned>(CUDA_EXTERNAL_MEMORY_DEDICATED)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int file = description->handle.fd;
  Header header;
  const std::size_t size = size_of(file);
  if (pread(file, &header, sizeof(header), 0) != static_cast<ssize_t>(sizeof(header)) ||
      header.size != size || header.offset >= size || description->size > size - header.offset)
    return CUDA_ERROR_INVALID_HANDLE;
  last_seen() = header;
  create<External>(memory, file, header.offset, size - header.offset, current_device());
  return CUDA_SUCCESS;
}
CUresult ExternalMemoryGetMappedBuffer(CUdeviceptr* address, CUexternalMemory memory,
                                       const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* part) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(External, its, memory);
  if (part->size == 0 || part->offset > its->size || part->size > its->size - part->offset)
    return CUDA_ERROR_INVALID_VALUE;
  const std::size_t whole = its->offset + its->size;
  void* const seen = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, its->file, 0);
  if (seen == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(seen) + its->offset + part->offset;
  show(*address, {.size = part->size, .device = its->device, .file = seen, .file_size = whole});
  return CUDA_SUCCESS;
}
CUresult MemFree(CUdeviceptr address) {
  WYE_NEEDS_CONTEXT;
  {
    const std::lock_guard lock(world().mutex);
    const auto known = world().memory.find(address);
    if (known == world().memory.end() || !known->second.file) return CUDA_ERROR_INVALID_VALUE;
  }
  release(address);
  return CUDA_SUCCESS;
}
CUresult DestroyExternalMemory(CUexternalMemory memory) {
  WYE_NEEDS_CONTEXT;
  return destroy<External>(memory);
}

/// Another driver's timeline semaphore: a number in a file.
struct Semaphore {
  static constexpr std::string_view kind = "semaphores";
  Semaphore(int f, std::uint64_t* v) : file(f), value(v) {}
  Semaphore(const Semaphore&) = delete;
  ~Semaphore() {
    munmap(value, sizeof(*value));
    close(file);
  }
  const int file;
  std::uint64_t* const value;
};

CUresult ImportExternalSemaphore(CUexternalSemaphore* semaphore,
                                 const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC* description) {
  WYE_NEEDS_CONTEXT;
  if (description->type != CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD || description->flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (size_of(description->handle.fd) != sizeof(std::uint64_t)) return CUDA_ERROR_INVALID_HANDLE;
  void* const value =
      mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, description->handle.fd, 0);
  if (value == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  create<Semaphore>(semaphore, description->handle.fd, static_cast<std::uint64_t*>(value));
  return CUDA_SUCCESS;
}
CUresult SignalExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                       const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS* parameters,
                                       unsigned count, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (count != 1) return CUDA_ERROR_INVALID_VALUE;
  WYE_NEEDS(Semaphore, its, *semaphores);
  on->push([word = its->value, value = parameters->params.fence.value] {
    if (!broken()) std::atomic_ref(*word).store(value, std::memory_order_release);
  });
  return CUDA_SUCCESS;
}
CUresult WaitExternalSemaphoresAsync(const CUexternalSemaphore* semaphores,
                                     const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS* parameters, unsigned count,
                                     CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (count != 1) return CUDA_ERROR_INVALID_VALUE;
  WYE_NEEDS(Semaphore, its, *semaphores);
  see_all();  // how other drivers wait for this one is not known
  begin(*on);
  on->push([word = its->value, value = parameters->params.fence.value] {
    while (!broken() && std::atomic_ref(*word).load(std::memory_order_acquire) < value)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  });
  return CUDA_SUCCESS;
}
CUresult DestroyExternalSemaphore(CUexternalSemaphore semaphore) {
  WYE_NEEDS_CONTEXT;
  return destroy<Semaphore>(semaphore);
}

WYE_ENTRY_POINTS(WYE_ENTRY(MemGetAllocationGranularity, 10020), WYE_ENTRY(MemCreate, 10020),
                 WYE_ENTRY(MemRelease, 10020), WYE_ENTRY(MemExportToShareableHandle, 10020),
                 WYE_ENTRY(MemAddressReserve, 10020), WYE_ENTRY(MemAddressFree, 10020),
                 WYE_ENTRY(MemMap, 10020), WYE_ENTRY(MemSetAccess, 10020), WYE_ENTRY(MemUnmap, 10020),
                 WYE_ENTRY(ImportExternalMemory, 10000), WYE_ENTRY(ExternalMemoryGetMappedBuffer, 10000),
                 WYE_OLDER(MemFree, 2000), WYE_ENTRY(MemFree, 3020), WYE_ENTRY(DestroyExternalMemory, 10000),
                 WYE_ENTRY(ImportExternalSemaphore, 10000), WYE_ENTRY(SignalExternalSemaphoresAsync, 10000),
                 WYE_ENTRY(WaitExternalSemaphoresAsync, 10000), WYE_ENTRY(DestroyExternalSemaphore, 10000));

}  // namespace
}  // namespace standin
