// CUDA's header as this program includes it.
#include <cuda.h>
#include <wye/interop/cuda.hpp>
#include <wye/wye.hpp>

bool refuses_cuda(const wye::Device& device);
bool refuses_cuda(const wye::Device& device) {
  return !wye::interop::cuda_device(device) && !wye::interop::cuda_buffer<float>(device, {0, 4}) &&
         !wye::interop::sync_point(device, CUevent{}) && !wye::interop::follow(CUstream{}, {});
}
