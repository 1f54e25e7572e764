#include "backend/cuda/cuda_pool.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "backend/cuda/cuda_device.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

Result<std::shared_ptr<CudaPool>> CudaPool::create(CudaDevice& device, Bytes kept) {
  const auto refused = [&](CUresult r, const char* api) {
    return device.failed(r, api, base::text("Device '{}' cannot create a memory pool.", device.info().id));
  };
  auto pool = base::own(new CudaPool(device));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.handle();
  CUmemoryPool handle = nullptr;
  if (const CUresult r = device.cu.MemPoolCreate(&handle, &properties); r != CUDA_SUCCESS)
    return refused(r, "cuMemPoolCreate");
  pool->handle_ = handle;
  cuuint64_t threshold = kept.count;
  if (const CUresult r = device.cu.MemPoolSetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
      r != CUDA_SUCCESS)
    return refused(r, "cuMemPoolSetAttribute");
  return pool;
}

CudaPool::~CudaPool() {
  if (!handle_ || device_.lost()) return;
  const CurrentContext current(device_);
  if (current) device_.lose_if_fatal(device_.cu.MemPoolDestroy(handle_), "cuMemPoolDestroy");
}

CUresult CudaPool::allow_access(CUdevice peer) const {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = peer;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const CurrentContext current(device_);
  if (!current) return current.result();
  return device_.cu.MemPoolSetAccess(handle_, &access, 1);
}

Result<std::shared_ptr<CudaPool>> CudaPools::of(const std::shared_ptr<device::MemoryAccount>& account) {
  std::vector<Entry> ended;  // destroyed after the lock is released
  const auto find = [&]() -> std::shared_ptr<CudaPool> {
    for (const Entry& entry : pools_)
      if (entry.is_of(account)) return entry.pool;
    return nullptr;
  };
  {
    const std::lock_guard lock(mutex_);
    if (auto known = find()) return known;
    const auto first = std::partition(pools_.begin(), pools_.end(), [](const Entry& entry) {
      return entry.is_of(nullptr) || !entry.account.expired();
    });
    ended.assign(std::make_move_iterator(first), std::make_move_iterator(pools_.end()));
    pools_.erase(first, pools_.end());
  }
  const Bytes kept = device_.kept_memory();
  auto made = CudaPool::create(device_, account ? Bytes{std::min(kept.count, account->limit().count)} : kept);
  if (!made) return made;
  std::vector<CUdevice> peers;
  {
    const std::lock_guard lock(mutex_);
    if (auto known = find()) return known;  // another thread was faster
    pools_.push_back({account, *made});
    peers = peers_;
  }
  for (const CUdevice peer : peers)
    if (const CUresult r = (*made)->allow_access(peer); r != CUDA_SUCCESS)
      return device_.failed(
          r, "cuMemPoolSetAccess",
          base::text("Device '{}' cannot give another device access to its memory.", device_.info().id));
  return made;
}

CUresult CudaPools::allow_access(CUdevice peer) {
  {
    const std::lock_guard lock(mutex_);
    peers_.push_back(peer);
  }
  for (const auto& pool : all())
    if (const CUresult r = pool->allow_access(peer); r != CUDA_SUCCESS) {
      const std::lock_guard lock(mutex_);
      std::erase(peers_, peer);
      return r;
    }
  return CUDA_SUCCESS;
}

std::vector<std::shared_ptr<CudaPool>> CudaPools::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<CudaPool>> list;
  for (const Entry& entry : pools_) list.push_back(entry.pool);
  return list;
}

CUresult CudaPools::trim() {
  for (const auto& pool : all())
    if (const CUresult r = device_.cu.MemPoolTrimTo(pool->handle(), 0); r != CUDA_SUCCESS) return r;
  return CUDA_SUCCESS;
}

Bytes CudaPools::idle() {
  Bytes idle;
  for (const auto& pool : all()) {
    cuuint64_t reserved = 0, used = 0;
    const auto ask = [&](CUmemPool_attribute what, cuuint64_t& value) {
      const CUresult r = device_.cu.MemPoolGetAttribute(pool->handle(), what, &value);
      device_.lose_if_fatal(r, "cuMemPoolGetAttribute");
      return r == CUDA_SUCCESS;
    };
    if (ask(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved) && ask(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used))
      idle.count += reserved - std::min(used, reserved);
  }
  return idle;
}

}  // namespace cuda
}  // namespace v0
}  // namespace wye
