#pragma once
// A team: 2^log2 adjacent threads of one block of 256 that combine their partial results, always in the same
// order. A partial result is a struct of floats, with combine(T, T) and shuffled(T, int), which reads the
// result of another lane.

__device__ float shuffled(float v, int bits) { return __shfl_xor_sync(0xffffffffu, v, bits); }

__device__ float combine(float a, float b) { return a + b; }

struct Pair {
  float x, y;
};
__device__ Pair shuffled(Pair v, int bits) { return {shuffled(v.x, bits), shuffled(v.y, bits)}; }

// Returns the combined partial results of the team. All threads of the block call it, once, because it uses
// shared memory.
template <class T>
__device__ T team_result(T mine, unsigned log2) {
  // Uses shuffles within a warp. Both lanes combine the lower lane first and get the same bits.
  const unsigned in_warp = log2 < 5 ? log2 : 5;
  for (int reach = 1; reach < 1 << in_warp; reach *= 2) {
    const T other = shuffled(mine, reach);
    mine = threadIdx.x & reach ? combine(other, mine) : combine(mine, other);
  }
  if (log2 <= 5) return mine;

  __shared__ T of_warps[8];
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
  __syncthreads();
  const unsigned warps = 1u << (log2 - 5), first = threadIdx.x / 32 & ~(warps - 1);
  T all = of_warps[first];
  for (unsigned i = 1; i < warps; ++i) all = combine(all, of_warps[first + i]);
  return all;
}
