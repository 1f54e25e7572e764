#pragma once
// c = a b, or c += a b, over one stretch of the inner dimension. A block of 256 threads makes 128 x 128 elements of c, a thread
// 8 x 8 of them in registers, as four tiles of 4 x 4 that lie 64 apart: a warp's loads of 128 bits from shared memory then
// meet no bank twice. While 8 steps of the inner dimension are worked on, the next 8 are on their way into registers,
// and from there go into the other half of the shared memory: one barrier for 8 steps.
#include "quads.cuh"

struct Product {
  unsigned rows;  // of c
  unsigned columns;
  unsigned inner;
  unsigned first;  // the stretch: [first, last)
  unsigned last;
  unsigned transposed;  // whether b is given as columns x inner
};

constexpr unsigned tile_side = 128, tile_depth = 8;
// Four columns more than there are keep rows at multiples of 16 bytes, and the transposing stores apart.
struct alignas(16) ProductTiles {
  float a[2][tile_depth][tile_side + 4];
  float b[2][tile_depth][tile_side + 4];
};

// Four neighbours of a matrix in memory, from (row, at) on; zeros beyond its `rows`, and at `end` of each row.
struct Matrix {
  const float* data;
  unsigned rows, end;
  unsigned step;  // from row to row
  bool quads;     // whether each fourth element of a row begins at a multiple of 16 bytes
};
__device__ Quad four_of(const Matrix& m, unsigned row, unsigned at) {
  Quad q = {0.0f, 0.0f, 0.0f, 0.0f};
  if (row >= m.rows || at >= m.end) return q;
  const float* const from = m.data + Size(row) * m.step + at;
  const unsigned left = m.end - at;
  if (m.quads && left >= 4) return *reinterpret_cast<const Quad*>(from);
  q.x = from[0];
  if (left > 1) q.y = from[1];
  if (left > 2) q.z = from[2];
  if (left > 3) q.w = from[3];
  return q;
}

// `depth` x 128 of a matrix, on its way into shared memory: a thread brings four.
struct Bringer {
  Matrix m;
  bool across;    // the inner dimension is along rows, and is turned
  unsigned line;  // the first of the 128
  __device__ Quad load(unsigned k) const {
    return across ? four_of(m, line + threadIdx.x / 2, k + threadIdx.x % 2 * 4)
                  : four_of(m, k + threadIdx.x / 32, line + threadIdx.x % 32 * 4);
  }
  __device__ void store(float (*to)[tile_side + 4], Quad q) const {
    if (!across) {
      *reinterpret_cast<Quad*>(&to[threadIdx.x / 32][threadIdx.x % 32 * 4]) = q;
      return;
    }
    const unsigned k = threadIdx.x % 2 * 4, at = threadIdx.x / 2;
    to[k][at] = q.x;
    to[k + 1][at] = q.y;
    to[k + 2][at] = q.z;
    to[k + 3][at] = q.w;
  }
};

__device__ void read_eight(const float* row, unsigned at, float (&to)[8]) {
  const Quad low = *reinterpret_cast<const Quad*>(row + at), high = *reinterpret_cast<const Quad*>(row + at + 64);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

template <bool add>
__device__ void write_four(float* to, const float* sums, unsigned left, bool quads) {
  if (quads && left >= 4) {
    Quad q = {sums[0], sums[1], sums[2], sums[3]};
    if (add) {
      const Quad before = *reinterpret_cast<const Quad*>(to);
      q = {before.x + q.x, before.y + q.y, before.z + q.z, before.w + q.w};
    }
    *reinterpret_cast<Quad*>(to) = q;
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < 4; ++i)
    if (i < left) to[i] = add ? to[i] + sums[i] : sums[i];
}

template <bool add>
__device__ void multiply(const float* a, const float* b, float* c, const Product& shape, ProductTiles& tiles) {
  // Tiles are numbered in blocks of 2 x 2, as the host's blocks of 256 x 256 are.
  const Size number = flat_block(), block = number / 4;
  const unsigned blocks_across = (shape.columns + 2 * tile_side - 1) / (2 * tile_side);
  const Size row = (block / blocks_across * 2 + number / 2 % 2) * tile_side;
  const unsigned column = unsigned(block % blocks_across * 2 + number % 2) * tile_side;
  if (row >= shape.rows || column >= shape.columns) return;

  const bool turned = shape.transposed != 0;
  const unsigned depth = shape.last - shape.first;
  a += shape.first;
  b += turned ? Size(shape.first) : Size(shape.first) * shape.columns;
  const Bringer bring_a{{a, shape.rows, depth, shape.inner, has_quads(a) && shape.inner % 4 == 0}, true, unsigned(row)};
  const Bringer bring_b{turned ? Matrix{b, shape.columns, depth, shape.inner, has_quads(b) && shape.inner % 4 == 0}
                               : Matrix{b, depth, shape.columns, shape.columns, has_quads(b) && shape.columns % 4 == 0},
                        turned, column};
  const unsigned x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;

  float sums[8][8] = {};
  bring_a.store(tiles.a[0], bring_a.load(0));
  bring_b.store(tiles.b[0], bring_b.load(0));
  __syncthreads();
  for (unsigned k = 0, half = 0; k < depth; k += tile_depth, half ^= 1) {
    const Quad next_a = bring_a.load(k + tile_depth), next_b = bring_b.load(k + tile_depth);
#pragma unroll
    for (unsigned i = 0; i < tile_depth; ++i) {
      float left[8], right[8];
      read_eight(tiles.a[half][i], y, left);
      read_eight(tiles.b[half][i], x, right);
#pragma unroll
      for (unsigned r = 0; r < 8; ++r)
#pragma unroll
        for (unsigned s = 0; s < 8; ++s) sums[r][s] = fmaf(left[r], right[s], sums[r][s]);
    }
    bring_a.store(tiles.a[half ^ 1], next_a);
    bring_b.store(tiles.b[half ^ 1], next_b);
    __syncthreads();
  }

  const bool quads = has_quads(c) && shape.columns % 4 == 0;
#pragma unroll
  for (unsigned r = 0; r < 8; ++r) {
    const Size at = row + y + r % 4 + r / 4 * 64;
    if (at >= shape.rows) continue;
    float* const to = c + at * shape.columns;
#pragma unroll
    for (unsigned s = 0; s < 8; s += 4) {
      const unsigned from = column + x + s * 16;
      if (from < shape.columns) write_four<add>(to + from, &sums[r][s], shape.columns - from, quads);
    }
  }
}
