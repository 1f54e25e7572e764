#include "support/cuda/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "support/cuda/order.hpp"
#include "support/cuda/stream.hpp"

namespace standin {
namespace {

/// Has a pool release unused memory, down to `least`. The world is locked.
void shrink(PoolMemory& pool, std::uint64_t least) {
  const std::uint64_t left = std::min(pool.reserved, std::max(pool.used, least));
  world().device_bytes -= pool.reserved - left;
  pool.reserved = left;
}

struct Pool {
  static constexpr std::string_view kind = "pools";
  explicit Pool(int of) : device(of) {}
  Pool(const Pool&) = delete;
  ~Pool() {
    const std::lock_guard lock(world().mutex);
    memory->ended = true;
    shrink(*memory, 0);
  }
  const std::shared_ptr<PoolMemory> memory = std::make_shared<PoolMemory>();
  const int device;
};

}  // namespace

Allocation* find_allocation(CUdeviceptr address, std::size_t size) {
  auto next = world().memory.upper_bound(address);
  if (next == world().memory.begin()) return nullptr;
  --next;
  return address - next->first <= next->second.size && size <= next->second.size - (address - next->first)
             ? &next->second
             : nullptr;
}

void poison(void* memory, std::size_t size, int with) {
  constexpr std::size_t most = 1u << 20;
  std::memset(memory, with, std::min(size, most));
  if (size > most)
    std::memset(static_cast<std::byte*>(memory) + size - std::min(size - most, most), with,
                std::min(size - most, most));
}

namespace {

std::size_t mapped(std::size_t size) { return (size + 4095) & ~std::size_t{4095}; }

}  // namespace

bool is_known(CUdeviceptr address, std::size_t size) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  return find_allocation(address, size) != nullptr;
}

bool is_reached_by(int device, CUdeviceptr address, std::size_t size) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  const Allocation* const found = find_allocation(address, size);
  return found && (found->pinned || found->device == device);
}

void show(CUdeviceptr address, const Allocation& seen) {
  const std::lock_guard lock(world().mutex);
  world().memory[address] = seen;
  world().device_bytes += seen.size;
}

void* allocate(std::size_t size, Allocation from) {
  void* memory =
      mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  poison(memory, size, 0xcb);
  const std::lock_guard lock(world().mutex);
  from.size = size;
  if (PoolMemory* const pool = from.pool.get()) {
    const std::uint64_t kept = pool->reserved - pool->used;
    const std::uint64_t more = size - std::min<std::uint64_t>(size, kept);
    if (more > total_memory() - std::min<std::size_t>(total_memory(), world().device_bytes))
      return munmap(memory, mapped(size)), nullptr;
    pool->used += size;
    pool->reserved += more;
    world().device_bytes += more;
  } else if (!from.pinned) {
    world().device_bytes += size;
  }
  world().memory[reinterpret_cast<CUdeviceptr>(memory)] = std::move(from);
  return memory;
}

/// Removes an allocation. Small ones stay mapped and poisoned, so that later reads are detected.
void release(CUdeviceptr address) {
  Allocation gone;
  {
    const Unseen unseen;
    const std::lock_guard lock(world().mutex);
    const auto known = world().memory.find(address);
    if (known == world().memory.end()) return;
    gone = known->second;
    world().memory.erase(known);
    world().reservations.erase(address);  // it is mapped no longer, so its address is used again
    if (gone.pool) {
      gone.pool->used -= gone.size;
      if (gone.pool->ended) shrink(*gone.pool, 0);
    } else if (!gone.pinned) {
      world().device_bytes -= gone.size;
    }
  }
  if (gone.file) {
    munmap(gone.file, gone.file_size);
    return;
  }
  poison(bytes(address), gone.size, 0xdd);
  const Unseen unseen;
  static std::mutex mutex;
  static auto& old = *new std::deque<std::pair<CUdeviceptr, std::size_t>>;  // never destroyed, as the world
  static std::size_t kept = 0;
  const std::lock_guard lock(mutex);
  old.push_back({address, mapped(gone.size)});
  kept += mapped(gone.size);
  while (kept > (256u << 20)) {
    munmap(bytes(old.front().first), old.front().second);
    kept -= old.front().second;
    old.pop_front();
  }
}

void give_back_kept() {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  for (const auto& [object, its] : world().objects)
    if (its.kind == Pool::kind) {
      PoolMemory& pool = *static_cast<Pool*>(object)->memory;
      shrink(pool, pool.threshold);
    }
}

std::size_t total_memory() { return static_cast<std::size_t>(setting("WYE_STANDIN_MEMORY", 8ll << 30)); }

namespace {

bool has_room(std::size_t size) {
  const std::lock_guard lock(world().mutex);
  return size <= total_memory() - std::min<std::size_t>(total_memory(), world().device_bytes);
}

CUresult MemGetInfo(std::size_t* free, std::size_t* total) {
  WYE_NEEDS_CONTEXT;
  const std::lock_guard lock(world().mutex);
  *total = total_memory();
  *free = *total - std::min<std::size_t>(*total, world().device_bytes);
  return CUDA_SUCCESS;
}
CUresult MemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  WYE_NEEDS_CONTEXT;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  create<Pool>(pool, properties->location.id);
  return CUDA_SUCCESS;
}
CUresult MemPoolDestroy(CUmemoryPool pool) {
  WYE_NEEDS_CONTEXT;
  return destroy<Pool>(pool);
}
CUresult MemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Pool, its, pool);
  if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(world().mutex);
  its->memory->threshold = *static_cast<cuuint64_t*>(value);
  return CUDA_SUCCESS;
}
CUresult MemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Pool, its, pool);
  if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && attribute != CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(world().mutex);
  *static_cast<cuuint64_t*>(value) =
      attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT ? its->memory->used : its->memory->reserved;
  return CUDA_SUCCESS;
}
CUresult MemPoolTrimTo(CUmemoryPool pool, std::size_t least) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Pool, its, pool);
  const std::lock_guard lock(world().mutex);
  shrink(*its->memory, least);
  return CUDA_SUCCESS;
}
CUresult MemAllocFromPoolAsync(CUdeviceptr* address, std::size_t size, CUmemoryPool pool, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Pool, its, pool);
  WYE_NEEDS(Stream, on, stream);
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  void* memory = allocate(size, {.device = its->device, .pool = its->memory});
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  begin(*on);
  note_allocation(*on, *address);
  // Work behind it in the stream may use it; values that others have written by then are lost.
  on->push([=] { poison(memory, size, 0xcb); });
  return CUDA_SUCCESS;
}
CUresult MemFreeAsync(CUdeviceptr address, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (!is_known(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  begin(*on);
  note_free(*on, address);
  on->push([address] { release(address); });
  return CUDA_SUCCESS;
}
CUresult MemAlloc(CUdeviceptr* address, std::size_t size) {
  WYE_NEEDS_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (!has_room(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory = allocate(size, {.device = current_device()});
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
/// Waits for all work of the device.
CUresult MemFree(CUdeviceptr address) {
  WYE_NEEDS_CONTEXT;
  if (!is_known(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::shared_ptr<Mark>> ends;
  {
    const std::lock_guard lock(world().mutex);
    for (const auto& [object, its] : world().objects)
      if (its.kind == Stream::kind) {
        auto& stream = *static_cast<Stream*>(object);
        ends.push_back(stream.Queue::mark());
        ends.back()->moment = stream.moment;
      }
  }
  for (const auto& end : ends) {
    (void)wait_for(*end);
    see(end->moment);
  }
  release(address);
  return state();
}
CUresult MemHostAlloc(void** memory, std::size_t size, unsigned) {
  WYE_NEEDS_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = allocate(size, {.pinned = true});
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult MemFreeHost(void* memory) {
  WYE_NEEDS_CONTEXT;
  if (!is_known(reinterpret_cast<CUdeviceptr>(memory), 1)) return CUDA_ERROR_INVALID_VALUE;
  release(reinterpret_cast<CUdeviceptr>(memory));
  return CUDA_SUCCESS;
}
CUresult MemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  WYE_NEEDS_CONTEXT;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return is_known(*address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
}  // namespace

/// Refuses memory that is not pinned: a driver's behaviour with it is not defined enough to depend
/// on.
CUresult push_copy(Sequence& on, CUdeviceptr to, CUdeviceptr from, std::size_t size) {
  if (!is_reached_by(on.device, to, size) || !is_reached_by(on.device, from, size))
    return CUDA_ERROR_INVALID_VALUE;
  Latency* const lasts = latency("copy");
  begin(on);
  note_use(on, to, "a copy");
  note_use(on, from, "a copy");
  on.push([=] {
    if (broken()) return;
    const auto begin = Latency::Clock::now();
    if (!is_known(to, size) || !is_known(from, size))
      return break_device(700, "a copy begins when its memory has been given back");
    std::memcpy(bytes(to), bytes(from), size);
    if (lasts) lasts->spend(begin);
  });
  return CUDA_SUCCESS;
}

namespace {

/// Copies between two devices, each identified by its context.
CUresult MemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                         std::size_t size, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (!is_reached_by(device_of(to_context), to, size) || !is_reached_by(device_of(from_context), from, size))
    return CUDA_ERROR_INVALID_VALUE;
  begin(*on);
  note_use(*on, to, "a copy between devices");
  note_use(*on, from, "a copy between devices");
  on->push([=] {
    if (broken()) return;
    if (!is_known(to, size) || !is_known(from, size))
      return break_device(700, "a copy between devices begins when its memory has been given back");
    std::memcpy(bytes(to), bytes(from), size);
  });
  return CUDA_SUCCESS;
}
CUresult DeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  *can = device != peer && setting("WYE_STANDIN_PEERS", 1) != 0;
  return CUDA_SUCCESS;
}
CUresult MemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* list, std::size_t count) {
  WYE_NEEDS_CONTEXT;  // the header does not mention it
  WYE_NEEDS(Pool, its, pool);
  for (std::size_t i = 0; i < count; ++i)
    if (list[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || list[i].location.id == its->device ||
        list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult push_fill(Sequence& on, CUdeviceptr to, unsigned pattern, std::size_t count) {
  if (to % 4 != 0 || !is_known(to, count * 4)) return CUDA_ERROR_INVALID_VALUE;
  begin(on);
  note_use(on, to, "a fill");
  on.push([=] {
    if (broken()) return;
    if (!is_known(to, count * 4))
      return break_device(700, "a fill begins when its memory has been given back");
    std::fill_n(reinterpret_cast<unsigned*>(to), count, pattern);
  });
  return CUDA_SUCCESS;
}

namespace {

CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  return push_copy(*on, to, from, size);
}
CUresult MemsetD32Async(CUdeviceptr to, unsigned pattern, std::size_t count, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  return push_fill(*on, to, pattern, count);
}

WYE_ENTRY_POINTS(WYE_OLDER(MemGetInfo, 2000), WYE_ENTRY(MemGetInfo, 3020), WYE_OLDER(MemAlloc, 2000),
                 WYE_ENTRY(MemAlloc, 3020), WYE_OLDER(MemFree, 2000), WYE_ENTRY(MemFree, 3020),
                 WYE_ENTRY(MemPoolCreate, 11020), WYE_ENTRY(MemPoolDestroy, 11020),
                 WYE_ENTRY(MemPoolSetAttribute, 11020), WYE_ENTRY(MemPoolGetAttribute, 11020),
                 WYE_ENTRY(MemPoolTrimTo, 11020), WYE_ENTRY(MemAllocFromPoolAsync, 11020),
                 WYE_ENTRY(MemFreeAsync, 11020), WYE_ENTRY(MemHostAlloc, 2020), WYE_ENTRY(MemFreeHost, 2000),
                 WYE_OLDER(MemHostGetDevicePointer, 2020), WYE_ENTRY(MemHostGetDevicePointer, 3020),
                 WYE_ENTRY(MemcpyAsync, 4000), WYE_ENTRY(MemcpyPeerAsync, 4000),
                 WYE_ENTRY(DeviceCanAccessPeer, 4000), WYE_ENTRY(MemPoolSetAccess, 11020),
                 WYE_ENTRY(MemsetD32Async, 3020));

}  // namespace
}  // namespace standin
