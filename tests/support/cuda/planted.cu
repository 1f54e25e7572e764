// Kernels with a mistake each, for the tests that the engine and the sanitizers see it; and right ones of the same kind.
#include "support/cuda/host_instructions.hpp"

extern "C" __global__ void different_barriers(float* out) {
  if (threadIdx.x < 100u)
    __syncthreads();
  else
    __syncthreads();
  out[threadIdx.x] = 1.0f;
}

extern "C" __global__ void absent_from_barrier(float* out) {
  if (threadIdx.x == 40u) return;
  __syncthreads();
  out[threadIdx.x] = 1.0f;
}

// The upper half of each warp does not come.
extern "C" __global__ void absent_lanes(float* out) {
  float value = 1.0f;
  if (threadIdx.x % 32u < 16u) value += __shfl_down_sync(0xffffffffu, value, 8);
  __syncthreads();
  out[threadIdx.x] = value;
}

extern "C" __global__ void outside_mask(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(0x0000ffffu, out[threadIdx.x], 1);
}

// Each thread takes what its neighbour wrote, with a barrier between or without.
extern "C" __global__ void missing_barrier(float* out) {
  __shared__ float all[256];
  all[threadIdx.x] = 1.0f + threadIdx.x;
  out[threadIdx.x] = all[threadIdx.x ^ 1u];
}
extern "C" __global__ void with_barrier(float* out) {
  __shared__ float all[256];
  all[threadIdx.x] = 1.0f + threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = all[threadIdx.x ^ 1u];
}

// Lanes of one warp, which run together on no card since Volta.
extern "C" __global__ void missing_syncwarp(float* out) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = 1.0f + threadIdx.x;
  out[threadIdx.x] = dynamic[threadIdx.x ^ 1u];
}
extern "C" __global__ void with_syncwarp(float* out) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = 1.0f + threadIdx.x;
  __syncwarp();
  out[threadIdx.x] = dynamic[threadIdx.x ^ 1u];
}

// Each thread copies three numbers in groups of their own, waits until `before` groups are in flight at most, and takes the
// second number of a thread of another warp. With `after` there is a later wait.
template <unsigned before, bool meets, unsigned after = 3>
void copy_and_take(float* out) {
  __shared__ float all[3][256];
  for (unsigned i = 0; i < 3u; ++i) {
    begin_copy<1>(reinterpret_cast<unsigned*>(&all[i][threadIdx.x]), out + 256u * i + threadIdx.x, 4);
    end_group();
  }
  wait_for_groups<before>();
  if (meets) __syncthreads();
  wait_for_groups<after>();
  out[768u + threadIdx.x] = all[1][threadIdx.x ^ 33u];
}
extern "C" __global__ void copies(float* out) { copy_and_take<1, true>(out); }
extern "C" __global__ void copies_without_wait(float* out) { copy_and_take<3, true>(out); }
extern "C" __global__ void copies_with_early_wait(float* out) { copy_and_take<2, true>(out); }
extern "C" __global__ void copies_with_late_wait(float* out) { copy_and_take<3, true, 1>(out); }
extern "C" __global__ void copies_without_barrier(float* out) { copy_and_take<1, false>(out); }

// Copies of four words: all, the first seven bytes, none, too many bytes, from and to places that are not aligned.
extern "C" __global__ void sizes_of_copies(unsigned* out) {
  alignas(16) __shared__ unsigned all[6][4];
  if (threadIdx.x == 0u) {
    begin_copy<4>(all[0], out, 16);
    begin_copy<4>(all[1], out, 7);
    begin_copy<4>(all[2], out, 0);
    begin_copy<4>(all[3], out, 17);
    begin_copy<4>(all[4], out + 1, 16);
    begin_copy<2>(all[5] + 1, out, 8);
    end_group();
    wait_for_groups<0>();
  }
  __syncthreads();
  out[threadIdx.x + 8u] = all[threadIdx.x / 4u][threadIdx.x % 4u];
}

// Blocks add to one number.
extern "C" __global__ void plain_add(float* out) {
  if (threadIdx.x == 0u) out[0] += 1.0f;
}
extern "C" __global__ void atomic_add(float* out) {
  if (threadIdx.x == 0u) atomicAdd(out, 1.0f);
}

// Waits until two kernels are here, but not forever: a kernel without another beside it gives up.
__device__ inline bool meets(unsigned* here, unsigned patience) {
  atomicAdd(here, 1u);
  for (; patience != 0u; --patience)
    if (atomicAdd(here, 0u) == 2u) return true;
  return false;
}
extern "C" __global__ void meet(unsigned* counts, unsigned patience) {
  if (meets(counts, patience)) atomicAdd(counts + 1, 1u);
}
extern "C" __global__ void meet_too(unsigned* counts, unsigned patience) {
  if (meets(counts, patience)) atomicAdd(counts + 1, 1u);
}
// Between its read and its write there is time for another kernel's read.
extern "C" __global__ void slow_add(unsigned* counts, unsigned patience) {
  const unsigned was = counts[1];
  meets(counts, patience);
  counts[1] = was + 1u;
}

extern "C" __global__ void outside_global(float* out) { out[threadIdx.x + 1u] = 1.0f; }
extern "C" __global__ void outside_static_shared(float* out) {
  __shared__ float all[64];
  all[threadIdx.x + 1u] = 1.0f;
  out[threadIdx.x] = all[threadIdx.x];
}
extern "C" __global__ void outside_dynamic_shared(float* out) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x + 1u] = 1.0f;
  out[threadIdx.x] = dynamic[threadIdx.x];
}

// Reads what no thread of its block wrote: the upper halves.
extern "C" __global__ void unset_shared(float* out) {
  __shared__ float fixed[64];
  extern __shared__ float dynamic[];
  fixed[threadIdx.x / 2u] = dynamic[threadIdx.x / 2u] = 0.0f;
  const unsigned i = threadIdx.x | 32u;
  out[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x == 0u ? fixed[i] : dynamic[i];
}

// The last block to come adds what all have written.
extern "C" __global__ void last_block(float* out, unsigned* count) {
  if (threadIdx.x != 0u) return;
  out[blockIdx.x + 1u] = 1.0f + blockIdx.x;
  __threadfence();
  if (atomicAdd(count, 1u) != gridDim.x - 1u) return;
  __threadfence();
  float sum = 0.0f;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += out[i + 1u];
  out[0] = sum;
}

// What lanes have of one another, a row of 32 results for each operation.
extern "C" __global__ void warp_operations(unsigned* out) {
  const unsigned lane = threadIdx.x % 32u, warp = threadIdx.x / 32u, warps = blockDim.x / 32u;
  unsigned row = 0;
  const unsigned value = 100u * warp + lane;
  const unsigned all = 0xffffffffu;
#define PUT(x) out[(row++ * warps + warp) * 32u + lane] = (x)
  PUT(__shfl_sync(all, value, 5));
  PUT(__shfl_sync(all, value, lane + 1u, 8));
  PUT(__shfl_up_sync(all, value, 3));
  PUT(__shfl_up_sync(all, value, 1, 16));
  PUT(__shfl_down_sync(all, value, 3));
  PUT(__shfl_down_sync(all, value, 1, 16));
  PUT(__shfl_xor_sync(all, value, 21));
  PUT(__shfl_xor_sync(all, value, 3, 8));
  PUT(__ballot_sync(all, lane % 3u == 0u));
  PUT(__any_sync(all, lane == 31u));
  PUT(__all_sync(all, lane != 31u));
  PUT(__reduce_add_sync(all, value));
  PUT(__reduce_max_sync(all, value));
  // Both sides of a branch, each among its own.
  unsigned half;
  if (lane < 16u)
    half = __reduce_add_sync(0x0000ffffu, value);
  else
    half = __shfl_xor_sync(0xffff0000u, value, 1);
  PUT(half);
  PUT(static_cast<unsigned>(__shfl_sync(all, static_cast<unsigned long long>(value) << 33, 7) >> 33));
#undef PUT
}

// A tree over lanes, then over warps, in dynamic shared memory: the sum of a block.
extern "C" __global__ void __launch_bounds__(1024) block_sum(const float* from, float* to, unsigned count) {
  extern __shared__ float dynamic[];
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = i < count ? from[i] : 0.0f;
  for (unsigned by = 16u; by != 0u; by /= 2u) sum += __shfl_down_sync(0xffffffffu, sum, by);
  if (threadIdx.x % 32u == 0u) dynamic[threadIdx.x / 32u] = sum;
  __syncthreads();
  if (threadIdx.x < 32u) {
    sum = threadIdx.x < blockDim.x / 32u ? dynamic[threadIdx.x] : 0.0f;
    for (unsigned by = 16u; by != 0u; by /= 2u) sum += __shfl_down_sync(0xffffffffu, sum, by);
    if (threadIdx.x == 0u) to[blockIdx.x] = sum;
  }
}

// Names that kernels use, each as what it is defined by.
extern "C" __global__ void arithmetic(const float4* in, float4* out, unsigned* bits) {
  const float4 v = __ldg(in + threadIdx.x);
  out[threadIdx.x] = make_float4(rsqrtf(v.x), __expf(v.y), fmaf(v.x, v.y, v.z), fmaxf(fminf(v.z, v.w), min(v.x, v.y)));
  bits[threadIdx.x] = static_cast<unsigned>(__popc(__float_as_uint(v.x))) + static_cast<unsigned>(__clz(static_cast<int>(threadIdx.x))) +
                      __umulhi(0x80000000u, threadIdx.x) + max(3u, threadIdx.x);
}

extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(i, static_cast<int>(t));
  atomicMax(i + 1, static_cast<int>(t) - 7);
  atomicMin(i + 2, -static_cast<int>(t));
  atomicAdd(u, 1);
  atomicInc(u + 1, 9u);
  if (atomicCAS(u + 2, 0u, t + 1u) == 0u) atomicExch(u + 3, t);
  atomicAdd(l, 1ull << 33);
  atomicAdd(f, 0.5f);
  atomicAdd(d, 0.25);
}
