#pragma once
// y = the transpose of each x. A block transposes a tile of 32 x 32 in shared memory: adjacent threads then read
// and write adjacent elements.
#include "flat.cuh"

struct Transposition {
  unsigned rows;  // of x
  unsigned columns;
  unsigned batch;  // matrices
};

constexpr unsigned transposed_side = 32, transposed_block = 8 * transposed_side;

template <class T>
__device__ void transpose(const T* x, T* y, Transposition shape) {
  __shared__ T tile[transposed_side][transposed_side + 1];
  const unsigned rows = shape.rows, columns = shape.columns;
  // Tiles are numbered in blocks of 8 x 8: the host then needs few pages at a time.
  const unsigned across = (columns + transposed_block - 1) / transposed_block;
  const unsigned blocks = across * ((rows + transposed_block - 1) / transposed_block);
  if (blocks == 0) return;
  const Size number = flat_block(), block = number / 64, n = block / blocks;
  const unsigned at = unsigned(block % blocks);
  const unsigned row = at / across * transposed_block + unsigned(number / 8 % 8) * transposed_side;
  const unsigned column = at % across * transposed_block + unsigned(number % 8) * transposed_side;
  if (n >= shape.batch || row >= rows || column >= columns) return;
  const Size matrix = n * rows * columns;

  const unsigned line = threadIdx.x / transposed_side, place = threadIdx.x % transposed_side;
#pragma unroll
  for (unsigned i = line; i < transposed_side; i += 256 / transposed_side)
    if (row + i < rows && column + place < columns) tile[i][place] = x[matrix + Size(row + i) * columns + column + place];
  __syncthreads();
#pragma unroll
  for (unsigned i = line; i < transposed_side; i += 256 / transposed_side)
    if (column + i < columns && row + place < rows) y[matrix + Size(column + i) * rows + row + place] = tile[place][i];
}
