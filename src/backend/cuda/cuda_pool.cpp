#include "backend/cuda/cuda_pool.hpp"

#include <algorithm>

#include "backend/cuda/cuda_device.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {

Result<void> CudaPool::create(Bytes kept) {
  const auto refused = [&](CUresult r, const char* api) {
    return device_.failed(r, api, base::text("Device '{}' cannot create a memory pool.", device_.info().id));
  };
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_.handle();
  CUmemoryPool handle = nullptr;
  if (const CUresult r = device_.cu.MemPoolCreate(&handle, &properties); r != CUDA_SUCCESS)
    return refused(r, "cuMemPoolCreate");
  handle_ = handle;
  cuuint64_t threshold = kept.count;
  if (const CUresult r =
          device_.cu.MemPoolSetAttribute(handle, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
      r != CUDA_SUCCESS)
    return refused(r, "cuMemPoolSetAttribute");
  return {};
}

void CudaPool::destroy() noexcept {
  if (handle_) device_.lose_if_fatal(device_.cu.MemPoolDestroy(handle_), "cuMemPoolDestroy");
  handle_ = nullptr;
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

CUresult CudaPool::trim() const { return device_.cu.MemPoolTrimTo(handle_, 0); }

Bytes CudaPool::attribute(CUmemPool_attribute which) const {
  cuuint64_t value = 0;
  const CUresult r = device_.cu.MemPoolGetAttribute(handle_, which, &value);
  device_.lose_if_fatal(r, "cuMemPoolGetAttribute");
  return Bytes{r == CUDA_SUCCESS ? value : 0};
}

Bytes CudaPool::reserved() const { return attribute(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT); }

Bytes CudaPool::idle() const {
  const Bytes all = reserved(), used = attribute(CU_MEMPOOL_ATTR_USED_MEM_CURRENT);
  return all - std::min(used, all);
}

}  // namespace wye::cuda
