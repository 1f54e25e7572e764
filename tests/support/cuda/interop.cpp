// Queries of a host and of wye about each other's objects.
#include "support/cuda/order.hpp"
#include "support/cuda/stream.hpp"
#include "support/cuda/world.hpp"

namespace standin {
namespace {

CUresult EventQuery(CUevent event) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(Event, its, event);
  const std::shared_ptr<Mark> mark = its->last();
  if (!mark) return CUDA_SUCCESS;
  static const bool done = setting("WYE_STANDIN_DONE_WHEN_ASKED", 0) != 0;
  if (done) (void)wait_for(*mark);
  {
    const std::lock_guard lock(mark->mutex);
    if (!mark->reached) return CUDA_ERROR_NOT_READY;
  }
  see(mark->moment);
  return state();
}
CUresult CtxGetDevice(CUdevice* device) {
  WYE_NEEDS_CONTEXT;
  {
    const std::lock_guard lock(world().mutex);
    if (world().objects.contains(contexts.back())) return CUDA_ERROR_INVALID_CONTEXT;  // a part of a device
  }
  *device = current_device();
  return CUDA_SUCCESS;
}

WYE_ENTRY_POINTS(WYE_ENTRY(EventQuery, 2000), WYE_ENTRY(CtxGetDevice, 2000));

}  // namespace
}  // namespace standin
