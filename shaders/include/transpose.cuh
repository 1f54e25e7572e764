#pragma once
// y = the transpose of each x. A block transposes a tile of 32 x 32 in shared memory: adjacent threads then read
// and write adjacent elements.
#include "flat.cuh"

struct Transposition {
  unsigned rows;  // of x
  unsigned columns;
  unsigned batch;  // matrices
};

constexpr unsigned transposed_side = 32;

template <class T>
__device__ void transpose(const T* x, T* y, Transposition shape) {
  __shared__ T tile[transposed_side][transposed_side + 1];
  const unsigned rows = shape.rows, columns = shape.columns;
  const unsigned across = (columns + transposed_side - 1) / transposed_side;
  const unsigned down = (rows + transposed_side - 1) / transposed_side;
  const Size number = flat_block(), tiles = Size(across) * down;
  if (tiles == 0 || number / tiles >= shape.batch) return;
  const unsigned at = unsigned(number % tiles), row = at / across * transposed_side, column = at % across * transposed_side;
  const Size matrix = number / tiles * rows * columns;

  const unsigned line = threadIdx.x / transposed_side, place = threadIdx.x % transposed_side;
#pragma unroll
  for (unsigned i = line; i < transposed_side; i += 256 / transposed_side)
    if (row + i < rows && column + place < columns) tile[i][place] = x[matrix + Size(row + i) * columns + column + place];
  __syncthreads();
#pragma unroll
  for (unsigned i = line; i < transposed_side; i += 256 / transposed_side)
    if (column + i < columns && row + place < rows) y[matrix + Size(column + i) * rows + row + place] = tile[place][i];
}
