#include "support/cuda/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "support/cuda/stream.hpp"

namespace standin {
namespace {

/// Has a pool give back what it does not use, down to `least`. The world is locked.
void shrink(PoolMemory& pool, std::uint64_t least) {
  const std::uint64_t left = std::min(pool.reserved, std::max(pool.used, least));
  world().device_bytes -= pool.reserved - left;
  pool.reserved = left;
}

struct Pool {
  static constexpr std::string_view kind = "pools";
  Pool() = default;
  Pool(const Pool&) = delete;
  ~Pool() {
    const std::lock_guard lock(world().mutex);
    memory->ended = true;
    shrink(*memory, 0);
  }
  const std::shared_ptr<PoolMemory> memory = std::make_shared<PoolMemory>();
};

/// The allocation that [address, address + size) is in, or null. The world is locked.
const Allocation* find(CUdeviceptr address, std::size_t size) {
  auto next = world().memory.upper_bound(address);
  if (next == world().memory.begin()) return nullptr;
  --next;
  return address - next->first <= next->second.size && size <= next->second.size - (address - next->first)
             ? &next->second
             : nullptr;
}
/// Fresh memory is 0xcb and memory that was given back 0xdd: all of what is small, the ends of what is large.
void poison(void* memory, std::size_t size, int with) {
  constexpr std::size_t most = 1u << 20;
  std::memset(memory, with, std::min(size, most));
  if (size > most)
    std::memset(static_cast<std::byte*>(memory) + size - std::min(size - most, most), with,
                std::min(size - most, most));
}

std::size_t mapped(std::size_t size) { return (size + 4095) & ~std::size_t{4095}; }

}  // namespace

bool is_known(CUdeviceptr address, std::size_t size) {
  const Unseen unseen;
  const std::lock_guard lock(world().mutex);
  return find(address, size) != nullptr;
}

/// Fresh memory, 0xcb, or null where the pool finds no room.
void* allocate(std::size_t size, const std::shared_ptr<PoolMemory>& pool) {
  void* memory =
      mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  poison(memory, size, 0xcb);
  const std::lock_guard lock(world().mutex);
  if (pool) {
    const std::uint64_t kept = pool->reserved - pool->used;
    const std::uint64_t more = size - std::min<std::uint64_t>(size, kept);
    if (more > total_memory() - std::min<std::size_t>(total_memory(), world().device_bytes))
      return munmap(memory, mapped(size)), nullptr;
    pool->used += size;
    pool->reserved += more;
    world().device_bytes += more;
  }
  world().memory[reinterpret_cast<CUdeviceptr>(memory)] = {size, pool};
  return memory;
}

/// Takes it out of what is known. What is small stays where it is, poisoned, for who still reads it to be found out.
void release(CUdeviceptr address) {
  Allocation gone;
  {
    const Unseen unseen;
    const std::lock_guard lock(world().mutex);
    const auto known = world().memory.find(address);
    if (known == world().memory.end()) return;
    gone = known->second;
    world().memory.erase(known);
    if (gone.pool) {
      gone.pool->used -= gone.size;
      if (gone.pool->ended) shrink(*gone.pool, 0);
    }
  }
  poison(bytes(address), gone.size, 0xdd);
  const Unseen unseen;
  static std::mutex mutex;
  static auto& old = *new std::deque<std::pair<CUdeviceptr, std::size_t>>;  // as the world: to the very end
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
  create<Pool>(pool);
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
  void* memory = allocate(size, its->memory);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  // It is there for who comes behind it in the stream; what others have written by then is lost.
  on->push([=] { poison(memory, size, 0xcb); });
  return CUDA_SUCCESS;
}
CUresult MemFreeAsync(CUdeviceptr address, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (!is_known(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  on->push([address] { release(address); });
  return CUDA_SUCCESS;
}
CUresult MemHostAlloc(void** memory, std::size_t size, unsigned) {
  WYE_NEEDS_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = allocate(size, nullptr);
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

/// Memory that is not pinned is refused: what a driver does with it nobody should depend on.
CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (!is_known(to, size) || !is_known(from, size)) return CUDA_ERROR_INVALID_VALUE;
  on->push([=] {
    if (broken()) return;
    if (!is_known(to, size) || !is_known(from, size))
      return break_device(700, "a copy begins when its memory has been given back");
    std::memcpy(bytes(to), bytes(from), size);
  });
  return CUDA_SUCCESS;
}

namespace {}  // namespace

CUresult MemsetD32Async(CUdeviceptr to, unsigned pattern, std::size_t count, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Stream, on, stream);
  if (to % 4 != 0 || !is_known(to, count * 4)) return CUDA_ERROR_INVALID_VALUE;
  on->push([=] {
    if (broken()) return;
    if (!is_known(to, count * 4))
      return break_device(700, "a fill begins when its memory has been given back");
    std::fill_n(reinterpret_cast<unsigned*>(to), count, pattern);
  });
  return CUDA_SUCCESS;
}

namespace {

WYE_ENTRY_POINTS(WYE_OLDER(MemGetInfo, 2000), WYE_ENTRY(MemGetInfo, 3020), WYE_ENTRY(MemPoolCreate, 11020),
                 WYE_ENTRY(MemPoolDestroy, 11020), WYE_ENTRY(MemPoolSetAttribute, 11020),
                 WYE_ENTRY(MemPoolGetAttribute, 11020), WYE_ENTRY(MemPoolTrimTo, 11020),
                 WYE_ENTRY(MemAllocFromPoolAsync, 11020), WYE_ENTRY(MemFreeAsync, 11020),
                 WYE_ENTRY(MemHostAlloc, 2020), WYE_ENTRY(MemFreeHost, 2000),
                 WYE_OLDER(MemHostGetDevicePointer, 2020), WYE_ENTRY(MemHostGetDevicePointer, 3020),
                 WYE_ENTRY(MemcpyAsync, 4000), WYE_ENTRY(MemsetD32Async, 3020));

}  // namespace
}  // namespace standin
