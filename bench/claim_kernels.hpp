#pragma once
/// Three kernels to be compiled, in GLSL and in CUDA C++. Each needs the macro NUMBER, which makes
/// it another kernel.
#include <wye/wye.hpp>

#include <cstdint>
#include <string>

namespace wye_bench {

using MakeKernel = wye::AnyKernel (*)(const std::string& number);

/// One multiplication per element.
inline wye::AnyKernel simple_kernel(const std::string& number) {
  constexpr char glsl[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < x.length()) x[i] = x[i] * s + float(NUMBER);
})";
  constexpr char cuda[] = R"(
extern "C" __global__ void simple(wye_span<float> x, float s) {
  const unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x;
  if (i < x.size) x[i] = x[i] * s + static_cast<float>(NUMBER);
})";
  return wye::Kernel<wye::ReadWrite<float>, float>::make(
             {.name = "simple",
              .sources = {wye::Glsl{.text = glsl, .macros = {{"NUMBER", number}}},
                          wye::CudaCpp{.text = cuda, .macros = {{"NUMBER", number}}}}})
      .value();
}

/// The softmax of rows, one row per workgroup.
inline wye::AnyKernel typical_kernel(const std::string& number) {
  constexpr char glsl[] = R"(#version 450
layout(local_size_x = 128) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { uint columns; };
shared float parts[128];
float largest(float value) {
  const uint me = gl_LocalInvocationID.x;
  parts[me] = value;
  barrier();
  for (uint step = 64u; step > 0u; step /= 2u) {
    if (me < step) parts[me] = max(parts[me], parts[me + step]);
    barrier();
  }
  const float result = parts[0];
  barrier();
  return result;
}
float total(float value) {
  const uint me = gl_LocalInvocationID.x;
  parts[me] = value;
  barrier();
  for (uint step = 64u; step > 0u; step /= 2u) {
    if (me < step) parts[me] += parts[me + step];
    barrier();
  }
  const float result = parts[0];
  barrier();
  return result;
}
void main() {
  const uint row = gl_WorkGroupID.x * columns;
  if (row + columns > x.length()) return;
  float most = -float(NUMBER);
  for (uint c = gl_LocalInvocationID.x; c < columns; c += 128u) most = max(most, x[row + c]);
  most = largest(most);
  float sum = 0.0;
  for (uint c = gl_LocalInvocationID.x; c < columns; c += 128u) {
    const float e = exp(x[row + c] - most);
    x[row + c] = e;
    sum += e;
  }
  sum = total(sum);
  for (uint c = gl_LocalInvocationID.x; c < columns; c += 128u) x[row + c] /= sum;
})";
  constexpr char cuda[] = R"(
template <class Join>
__device__ float join_all(float* parts, float value, Join join) {
  parts[threadIdx.x] = value;
  __syncthreads();
  for (unsigned step = 64; step > 0; step /= 2) {
    if (threadIdx.x < step) parts[threadIdx.x] = join(parts[threadIdx.x], parts[threadIdx.x + step]);
    __syncthreads();
  }
  const float result = parts[0];
  __syncthreads();
  return result;
}
struct Largest { __device__ float operator()(float a, float b) const { return fmaxf(a, b); } };
struct Sum { __device__ float operator()(float a, float b) const { return a + b; } };
extern "C" __global__ void __launch_bounds__(128) typical(wye_span<float> x, unsigned columns) {
  __shared__ float parts[128];
  const unsigned long long row = static_cast<unsigned long long>(blockIdx.x) * columns;
  if (row + columns > x.size) return;
  float most = -static_cast<float>(NUMBER);
  for (unsigned c = threadIdx.x; c < columns; c += 128) most = fmaxf(most, x[row + c]);
  most = join_all(parts, most, Largest());
  float sum = 0;
  for (unsigned c = threadIdx.x; c < columns; c += 128) {
    const float e = expf(x[row + c] - most);
    x[row + c] = e;
    sum += e;
  }
  sum = join_all(parts, sum, Sum());
  for (unsigned c = threadIdx.x; c < columns; c += 128) x[row + c] /= sum;
})";
  return wye::Kernel<wye::ReadWrite<float>, std::uint32_t>::make(
             {.name = "typical",
              .sources = {wye::Glsl{.text = glsl, .macros = {{"NUMBER", number}}},
                          wye::CudaCpp{.text = cuda,
                                       .macros = {{"NUMBER", number}},
                                       .workgroup = wye::Extent3{128, 1, 1}}}})
      .value();
}

/// A product of square matrices with gelu. A workgroup has a tile of 64 x 64, an invocation 4 x 4
/// of it.
inline wye::AnyKernel complex_kernel(const std::string& number) {
  constexpr char glsl[] = R"(#version 450
layout(local_size_x = 16, local_size_y = 16) in;
layout(set = 0, binding = 0) readonly buffer A { float a[]; };
layout(set = 0, binding = 1) readonly buffer B { float b[]; };
layout(set = 0, binding = 2) writeonly buffer C { float c[]; };
layout(push_constant) uniform P { uint n; };
shared float left[16][65], right[16][64];
float gelu(float x) { return 0.5 * x * (1.0 + tanh(0.7978845608 * (x + 0.044715 * x * x * x))); }
void main() {
  const uint row = gl_WorkGroupID.y * 64u, column = gl_WorkGroupID.x * 64u;
  const uint my_row = gl_LocalInvocationID.y * 4u, my_column = gl_LocalInvocationID.x * 4u;
  float sums[4][4];
  for (uint i = 0u; i < 4u; ++i)
    for (uint j = 0u; j < 4u; ++j) sums[i][j] = float(NUMBER);
  for (uint k = 0u; k < n; k += 16u) {
    for (uint i = gl_LocalInvocationIndex; i < 1024u; i += 256u) {
      const uint r = row + i / 16u, left_k = k + i % 16u;
      const uint s = column + i % 64u, right_k = k + i / 64u;
      left[i % 16u][i / 16u] = r < n && left_k < n ? a[r * n + left_k] : 0.0;
      right[i / 64u][i % 64u] = s < n && right_k < n ? b[right_k * n + s] : 0.0;
    }
    barrier();
    for (uint d = 0u; d < 16u; ++d) {
      float x[4], y[4];
      for (uint i = 0u; i < 4u; ++i) {
        x[i] = left[d][my_row + i];
        y[i] = right[d][my_column + i];
      }
      for (uint i = 0u; i < 4u; ++i)
        for (uint j = 0u; j < 4u; ++j) sums[i][j] = fma(x[i], y[j], sums[i][j]);
    }
    barrier();
  }
  for (uint i = 0u; i < 4u; ++i)
    for (uint j = 0u; j < 4u; ++j) {
      const uint r = row + my_row + i, s = column + my_column + j;
      if (r < n && s < n) c[r * n + s] = gelu(sums[i][j]);
    }
})";
  constexpr char cuda[] = R"(
__device__ float gelu(float x) { return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x))); }
extern "C" __global__ void __launch_bounds__(256) product(wye_span<const float> a, wye_span<const float> b,
                                                          wye_span<float> c, unsigned n) {
  __shared__ float left[16][65], right[16][64];
  const unsigned row = blockIdx.y * 64, column = blockIdx.x * 64;
  const unsigned my_row = threadIdx.y * 4, my_column = threadIdx.x * 4;
  float sums[4][4];
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = 0; j < 4; ++j) sums[i][j] = static_cast<float>(NUMBER);
  for (unsigned k = 0; k < n; k += 16) {
    for (unsigned i = threadIdx.y * 16 + threadIdx.x; i < 1024; i += 256) {
      const unsigned r = row + i / 16, left_k = k + i % 16;
      const unsigned s = column + i % 64, right_k = k + i / 64;
      left[i % 16][i / 16] = r < n && left_k < n ? a[static_cast<unsigned long long>(r) * n + left_k] : 0.0f;
      right[i / 64][i % 64] = s < n && right_k < n ? b[static_cast<unsigned long long>(right_k) * n + s] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (unsigned d = 0; d < 16; ++d) {
      float x[4], y[4];
      for (unsigned i = 0; i < 4; ++i) {
        x[i] = left[d][my_row + i];
        y[i] = right[d][my_column + i];
      }
      for (unsigned i = 0; i < 4; ++i)
        for (unsigned j = 0; j < 4; ++j) sums[i][j] = fmaf(x[i], y[j], sums[i][j]);
    }
    __syncthreads();
  }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned j = 0; j < 4; ++j) {
      const unsigned r = row + my_row + i, s = column + my_column + j;
      if (r < n && s < n) c[static_cast<unsigned long long>(r) * n + s] = gelu(sums[i][j]);
    }
})";
  return wye::Kernel<wye::Read<float>, wye::Read<float>, wye::Write<float>, std::uint32_t>::make(
             {.name = "product",
              .sources = {wye::Glsl{.text = glsl, .macros = {{"NUMBER", number}}},
                          wye::CudaCpp{.text = cuda,
                                       .macros = {{"NUMBER", number}},
                                       .workgroup = wye::Extent3{16, 16, 1}}}})
      .value();
}

}  // namespace wye_bench
