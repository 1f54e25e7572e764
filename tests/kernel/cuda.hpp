#pragma once
/// CUDA C++ for the tests of this room, and devices that accept its artefacts.
#include <memory>
#include <string>
#include <utility>

#include "kernel/compilers/nvrtc.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/skip.hpp"

namespace wye::test {

/// Returns the compiler. Reports a skip and returns null if there is none.
inline std::shared_ptr<const kernel::CudaCompiler> nvrtc() {
  // Never closed: NVRTC leaks memory when it is closed.
  static const auto* const kept = new std::shared_ptr<const void>(kernel::CudaCompiler::keep());
  auto shared = kernel::CudaCompiler::share();
  if (shared && kept) return *shared;
  skip(shared.error().sentence());
  return nullptr;
}

/// A device of CUDA's as its backend describes it.
inline std::shared_ptr<DoubleDevice> cuda_device(std::string architecture, std::uint64_t driver_version = 0) {
  return std::make_shared<DoubleDevice>("cuda:0", std::vector<std::string_view>{"native", "cubin", "ptx"},
                                        Features{}, std::move(architecture), "doubles 1.0", driver_version);
}

/// programs.md, 02.
inline constexpr char scale_cu[] =
    R"(extern "C" __global__ void scale(wye_span<float> x, float s) {
                unsigned i = blockIdx.x * blockDim.x + threadIdx.x; if (i < x.size) x[i] *= s; })";

/// 16 x 16 tiles in shared memory.
inline constexpr char matmul_cu[] = R"(
extern "C" __global__ void __launch_bounds__(256)
matmul(const float* a, const float* b, float* c, unsigned n) {
  __shared__ float as[16][16], bs[16][16];
  const unsigned x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (unsigned tile = 0; tile < n; tile += 16) {
    as[y][x] = row < n && tile + x < n ? a[row * n + tile + x] : 0.0f;
    bs[y][x] = column < n && tile + y < n ? b[(tile + y) * n + column] : 0.0f;
    __syncthreads();
    for (unsigned k = 0; k < 16; ++k) sum += as[y][k] * bs[k][x];
    __syncthreads();
  }
  if (row < n && column < n) c[row * n + column] = sum;
})";

/// One warp for each row.
inline constexpr char softmax_cu[] = R"(
__device__ float all_max(float v) {
  for (int d = 16; d > 0; d /= 2) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
  return v;
}
__device__ float all_sum(float v) {
  for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}
extern "C" __global__ void softmax(wye_span<const float> in, wye_span<float> out, unsigned columns) {
  const unsigned long long first = (unsigned long long)(blockIdx.x) * columns;
  if (first >= in.size) return;
  float most = __int_as_float(0xff800000), sum = 0;
  for (unsigned i = threadIdx.x; i < columns; i += 32) most = fmaxf(most, in[first + i]);
  most = all_max(most);
  for (unsigned i = threadIdx.x; i < columns; i += 32) sum += expf(in[first + i] - most);
  sum = all_sum(sum);
  for (unsigned i = threadIdx.x; i < columns; i += 32) out[first + i] = expf(in[first + i] - most) / sum;
})";

/// With a header of the toolkit's.
inline constexpr char half_cu[] = R"(#include <cuda_fp16.h>
extern "C" __global__ void half_scale(wye_span<__half> x, float s) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] = __hmul(x[i], __float2half(s));
})";

}  // namespace wye::test
