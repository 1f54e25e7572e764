// Blocks that wait for each other. On the host by what CUDA calls cooperative groups, the same that a user's kernel has; on a device
// by hand, for NVRTC may come without the headers of those.
#ifndef __CUDA_ARCH__
#include <cooperative_groups.h>
__device__ inline void wait_for_grid(int line = __builtin_LINE()) { cooperative_groups::this_grid().sync(line); }
__device__ inline void wait_for_cluster(int line = __builtin_LINE()) { cooperative_groups::this_cluster().sync(line); }
__device__ inline unsigned rank_in_cluster() { return cooperative_groups::this_cluster().block_rank(); }
__device__ inline unsigned size_of_cluster() { return cooperative_groups::this_cluster().num_blocks(); }
#else
__device__ unsigned arrivals;
__device__ inline void wait_for_grid() {
  __syncthreads();
  if (threadIdx.x == 0u) {
    const unsigned blocks = gridDim.x * gridDim.y * gridDim.z;
    __threadfence();
    const unsigned goal = (atomicAdd(&arrivals, 1u) / blocks + 1u) * blocks;
    while (static_cast<int>(atomicAdd(&arrivals, 0u) - goal) < 0) {
    }
    __threadfence();
  }
  __syncthreads();
}
#if __CUDA_ARCH__ >= 900
__device__ inline void wait_for_cluster() {
  asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
}
__device__ inline unsigned rank_in_cluster() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline unsigned size_of_cluster() {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}
#endif
#endif

// `rounds` times: each thread takes its number from where the next block has its own, and adds one.
extern "C" __global__ void pass_on(wye_span<unsigned> even, wye_span<unsigned> odd, unsigned rounds) {
  __shared__ unsigned mine[64];  // each block has its own, while others run
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  mine[threadIdx.x] = i;
  __syncthreads();
  for (unsigned round = 0; round < rounds; ++round) {
    const wye_span<unsigned>& from = round % 2u == 0u ? even : odd;
    const wye_span<unsigned>& to = round % 2u == 0u ? odd : even;
    to[mine[threadIdx.x]] = from[(mine[threadIdx.x] + blockDim.x) % from.size] + 1u;
    wait_for_grid();
  }
}

// Each block tells its cluster its number, and adds up what it was told: to[block] = sum, cluster size, rank.
extern "C" __global__ void in_clusters(wye_span<unsigned> told, wye_span<unsigned> to) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x, rank = rank_in_cluster(), size = size_of_cluster();
  __shared__ unsigned own;
  if (threadIdx.x == 0u) own = block + 1u;
  __syncthreads();
  if (threadIdx.x == 0u) told[block] = own;
  wait_for_cluster();
  // The blocks of a cluster lie side by side, in one row.
  unsigned sum = 0u;
  for (unsigned i = 0u; i < size; ++i) sum += told[block - rank + i];
  wait_for_cluster();
  if (threadIdx.x == 0u) {
    to[3u * block] = sum + (own - block - 1u);
    to[3u * block + 1u] = size;
    to[3u * block + 2u] = rank;
  }
#endif
}

// What not all blocks come to.
extern "C" __global__ void not_all_come(wye_span<unsigned> told, wye_span<unsigned>) {
  if (threadIdx.x == 0u) told[blockIdx.x] = 1u;
  if (blockIdx.x != 0u) wait_for_grid();
}
