// Partitions of a device: green contexts. A description of resources is a number of
// multiprocessors.
#include <algorithm>
#include <cstdint>

#include "support/cuda/stream.hpp"

namespace standin {
namespace {

struct GreenContext {
  static constexpr std::string_view kind = "partitions";
  unsigned multiprocessors = 0;
};

CUresult DeviceGetDevResource(CUdevice, CUdevResource* resource, CUdevResourceType type) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  resource->type = type;
  resource->sm.smCount = static_cast<unsigned>(multiprocessors());
  return CUDA_SUCCESS;
}
CUresult DevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input,
                                   CUdevResource* rest, unsigned, unsigned least) {
  const unsigned taken = (std::max(least, 8u) + 7) / 8 * 8;  // as on compute capability 9.0
  if (*groups != 1 || taken > input->sm.smCount) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *result = *rest = *input;
  result->sm.smCount = taken;
  rest->sm.smCount = input->sm.smCount - taken;
  return CUDA_SUCCESS;
}
CUresult DevResourceGenerateDesc(CUdevResourceDesc* description, CUdevResource* resources, unsigned count) {
  if (count != 1 || resources->sm.smCount == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *description = reinterpret_cast<CUdevResourceDesc>(std::uintptr_t{resources->sm.smCount});
  return CUDA_SUCCESS;
}
CUresult GreenCtxCreate(CUgreenCtx* context, CUdevResourceDesc description, CUdevice, unsigned flags) {
  if (broken()) return state();
  if (flags != CU_GREEN_CTX_DEFAULT_STREAM) return CUDA_ERROR_INVALID_VALUE;
  world().multiprocessors = static_cast<int>(reinterpret_cast<std::uintptr_t>(description));
  create<GreenContext>(context,
                       GreenContext{static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(description))});
  return CUDA_SUCCESS;
}
CUresult GreenCtxDestroy(CUgreenCtx context) { return destroy<GreenContext>(context); }
CUresult CtxFromGreenCtx(CUcontext* context, CUgreenCtx partition) {
  if (!find<GreenContext>(partition)) return CUDA_ERROR_INVALID_HANDLE;
  *context = reinterpret_cast<CUcontext>(partition);
  return CUDA_SUCCESS;
}
CUresult GreenCtxStreamCreate(CUstream* stream, CUgreenCtx partition, unsigned flags, int priority) {
  if (!find<GreenContext>(partition)) return CUDA_ERROR_INVALID_HANDLE;
  return create_stream(stream, flags, priority, reinterpret_cast<CUcontext>(partition));
}

WYE_ENTRY_POINTS(WYE_ENTRY(DeviceGetDevResource, 12040), WYE_ENTRY(DevSmResourceSplitByCount, 12040),
                 WYE_ENTRY(DevResourceGenerateDesc, 12040), WYE_ENTRY(GreenCtxCreate, 12040),
                 WYE_ENTRY(GreenCtxDestroy, 12040), WYE_ENTRY(CtxFromGreenCtx, 12040),
                 WYE_ENTRY(GreenCtxStreamCreate, 12050));

}  // namespace
}  // namespace standin
