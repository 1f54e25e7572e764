#pragma once
// The flat grid of CUDA: blocks in rows of equal length, in the order of the items they cover.
typedef unsigned long long Size;

__device__ Size flat_block() { return Size(blockIdx.y) * gridDim.x + blockIdx.x; }
__device__ Size flat_blocks() { return Size(gridDim.x) * gridDim.y; }

// Return the index of this thread in the grid and the number of threads: the begin and the step of a loop
// over the grid.
__device__ Size flat_thread() { return flat_block() * blockDim.x + threadIdx.x; }
__device__ Size flat_threads() { return flat_blocks() * blockDim.x; }
