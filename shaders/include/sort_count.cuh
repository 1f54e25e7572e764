#pragma once
// Counts the elements of each tile by one digit of 8 bits of their keys.
#include "sort.cuh"

// `counts` are, of each row, 256 x tiles.
template <class Number>
__device__ void count_digits(wye_span<const Number> keys, wye_span<unsigned> counts, const SortShape& shape) {
  __shared__ unsigned of_tile[256];
  const Tile t = tile_of(shape);
  of_tile[threadIdx.x] = 0;
  __syncthreads();
  for (unsigned p = threadIdx.x; p < t.size; p += 256)
    atomicAdd(of_tile + digit_of(key_of(keys[t.first + p], shape), shape.shift, 255), 1u);
  __syncthreads();
  if (t.size != 0) counts[(t.row * 256 + threadIdx.x) * shape.tiles + t.column / tile_size] = of_tile[threadIdx.x];
}
