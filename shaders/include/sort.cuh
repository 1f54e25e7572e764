#pragma once
// Tiles of rows, and the order of their elements.
#include "flat.cuh"

// The distribution of rows over tiles, computed by `src/workloads/sorting.hpp`.
struct SortShape {
  unsigned rows;
  unsigned columns;
  unsigned tiles;          // of one row
  unsigned rows_per_tile;  // above 1 only if rows have one tile
  unsigned keep;           // the first elements of each sorted row that are written
  unsigned infinity;       // its bits, as in the upper half of a word; 0: keys are integers
  unsigned flip;           // inverts keys, or the signs of integers
  unsigned bits;           // of a key
  unsigned shift;          // of the digit of 8 bits that distributes the elements of longer rows
};

constexpr unsigned tile_size = 2048, per_thread = tile_size / 256;
constexpr unsigned few_tiles = 64;  // one thread adds up the counts of so many

struct Tile {
  Size row;         // its first row
  unsigned column;  // its first element of that row
  unsigned size;    // its elements; 0 if it does not exist
  Size first;       // element of the matrix
};

__device__ Tile tile_of(const SortShape& shape) {
  Tile t;
  const Size group = flat_block() / shape.tiles;
  t.row = group * shape.rows_per_tile;
  t.column = unsigned(flat_block() - group * shape.tiles) * tile_size;
  if (t.row >= shape.rows)
    t.size = 0;
  else if (shape.tiles > 1)
    t.size = min(tile_size, shape.columns - t.column);
  else
    t.size = min(shape.rows_per_tile, shape.rows - unsigned(t.row)) * shape.columns;
  t.first = t.row * shape.columns + t.column;
  return t;
}

// Return a number that has the order of the elements. All NaN have the largest number, and both zeros the same one.
__device__ unsigned key_of(unsigned bits, const SortShape& shape) {
  unsigned key = bits;
  if (shape.infinity != 0) {
    const unsigned size = bits & 0x7fffffffu, zero = 0x80000000u;
    key = size > shape.infinity ? 0xffffffffu : bits > size ? zero - size : zero + size;
  }
  return key ^ shape.flip;
}
__device__ unsigned key_of(unsigned short bits, const SortShape& shape) { return key_of(unsigned(bits) << 16, shape) >> 16; }
__device__ Size key_of(Size bits, const SortShape& shape) { return bits ^ Size((long long)int(shape.flip)); }

template <class Number>
struct SortKey {
  typedef unsigned Type;
};
template <>
struct SortKey<Size> {
  typedef Size Type;
};

template <class Key>
__device__ unsigned digit_of(Key key, unsigned shift, unsigned mask) {
  return unsigned(key >> shift) & mask;
}

// A sum of the numbers of the threads before this one, and the sum of all.
struct Prefix {
  unsigned before, all;
};

// Adds up the numbers of a block of 256. All threads of the block call it.
__device__ Prefix prefix_of(unsigned mine) {
  __shared__ unsigned of_warps[8];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = mine;
  for (unsigned reach = 1; reach < 32; reach *= 2) {
    const unsigned before = __shfl_up_sync(0xffffffffu, sum, reach);
    if (lane >= reach) sum += before;
  }
  if (lane == 31) of_warps[warp] = sum;
  __syncthreads();
  Prefix prefix = {sum - mine, 0};
  for (unsigned i = 0; i < 8; ++i) {
    if (i < warp) prefix.before += of_warps[i];
    prefix.all += of_warps[i];
  }
  __syncthreads();
  return prefix;
}
