#pragma once
// Products with float32 arithmetic. Narrower numbers are converted when they are copied to shared memory. A
// thread computes 8 x 8 elements of c in registers, as four tiles of 4 x 4 that are 64 apart. A warp's
// 128-bit loads from shared memory then have no bank conflicts. While a block computes 8 steps of the inner
// dimension, it loads the next 8 to registers, then to the other half of the shared memory. It needs one
// barrier per 8 steps.
#include "epilogue.cuh"
#include "numbers.cuh"
#include "product.cuh"

constexpr unsigned tile_depth = 8;
// Four columns of padding align rows to 16 bytes and avoid bank conflicts of the transposing stores.
struct alignas(16) ProductTiles {
  float a[2][tile_depth][tile_side + 4];
  float b[2][tile_depth][tile_side + 4];
  Place place;  // of this tile, here because no registers are left
};

// Copies a matrix's part of the stretch to shared memory: 8 steps x 128 lines. A thread copies four numbers
// that are adjacent in memory. Lines are rows of a and columns of b. Numbers beyond the matrix are zero.
template <class T>
struct Fetcher {
  typedef typename T::Number Number;
  typedef typename T::Four Four;

  const Number* from;  // the thread's first four numbers of the stretch
  unsigned stride;     // from one step of the inner dimension to the next
  unsigned end;        // number of steps from the thread's first step on; 0 if it has no line
  unsigned width;      // number of lines from the thread's first line on
  bool transposed;         // true: the four are steps of one line; false: lines of one step
  bool whole;          // whether each four is aligned to its size

  __device__ Four load(unsigned k) const {
    if (k >= end) return {};
    const Number* const here = from + Size(k) * stride;
    const unsigned left = transposed ? end - k : width;
    return whole && left >= 4 ? *reinterpret_cast<const Four*>(here) : T::four(here, left);
  }
  __device__ void store(float (*to)[tile_side + 4], Four four) const {
    const Quad q = T::values(four);
    if (!transposed) {
      *reinterpret_cast<Quad*>(&to[threadIdx.x / 32][threadIdx.x % 32 * 4]) = q;
      return;
    }
    float* const column = &to[threadIdx.x % 2 * 4][threadIdx.x / 2];
    column[0] = q.x;
    column[tile_side + 4] = q.y;
    column[2 * (tile_side + 4)] = q.z;
    column[3 * (tile_side + 4)] = q.w;
  }
};

// Makes the fetcher of a matrix of `lines` rows of `inner` numbers.
template <class T>
__device__ Fetcher<T> fetch_rows(const typename T::Number* data, unsigned first_line, unsigned lines, unsigned inner,
                                 unsigned depth) {
  const unsigned at = threadIdx.x % 2 * 4;
  const unsigned line = first_line + threadIdx.x / 2;
  return {data + Size(line) * inner + at, 1, line < lines && at < depth ? depth - at : 0, 0, true,
          has_quads<typename T::Four>(data) && inner % 4 == 0};
}
// Makes the fetcher of a matrix of `lines` columns.
template <class T>
__device__ Fetcher<T> fetch_columns(const typename T::Number* data, unsigned first_line, unsigned lines, unsigned depth) {
  const unsigned at = threadIdx.x / 32;
  const unsigned line = first_line + threadIdx.x % 32 * 4;
  return {data + Size(at) * lines + line, lines, line < lines && at < depth ? depth - at : 0, lines - line, false,
          has_quads<typename T::Four>(data) && lines % 4 == 0};
}

__device__ void read_eight(const float* row, unsigned at, float (&to)[8]) {
  const Quad low = *reinterpret_cast<const Quad*>(row + at), high = *reinterpret_cast<const Quad*>(row + at + 64);
  to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
  to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

// Writes or adds the first `left` of four adjacent sums. `quads`: whether the four are aligned to their size.
template <class T>
__device__ void write_four(float* to, const float* sums, unsigned left, bool quads, bool add) {
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
// Rounds four adjacent sums to 16 bits and writes the first `left` of them.
template <class T>
__device__ void write_four(unsigned short* to, const float* sums, unsigned left, bool quads, bool) {
  if (quads && left >= 4) {
    *reinterpret_cast<typename T::Four*>(to) = {T::rounded(sums[0], sums[1]), T::rounded(sums[2], sums[3])};
    return;
  }
  T::write_two(to, left, false, sums[0], sums[1]);
  if (left > 2) T::write_two(to + 2, left - 2, false, sums[2], sums[3]);
}

template <class T, class C, class E>
__device__ void multiply(const typename T::Number* a, const typename T::Number* b, C* c, const Product& shape, const E& epilogue,
                         ProductTiles& tiles) {
  Place place;
  if (!find_place(shape, place)) return;
  const unsigned row = place.row, column = place.column;
  if (threadIdx.x == 0) tiles.place = place;
  a += place.matrix * shape.a_step;
  b += place.matrix * shape.b_step;

  const unsigned depth = shape.last - shape.first;
  const Fetcher<T> fetch_a = shape.transposed_a != 0
                                 ? fetch_columns<T>(a + Size(shape.first) * shape.rows, row, shape.rows, depth)
                                 : fetch_rows<T>(a + shape.first, row, shape.rows, shape.inner, depth);
  const Fetcher<T> fetch_b = shape.transposed_b != 0
                                 ? fetch_rows<T>(b + shape.first, column, shape.columns, shape.inner, depth)
                                 : fetch_columns<T>(b + Size(shape.first) * shape.columns, column, shape.columns, depth);
  const unsigned x = threadIdx.x % 16 * 4, y = threadIdx.x / 16 * 4;

  float sums[8][8] = {};
  fetch_a.store(tiles.a[0], fetch_a.load(0));
  fetch_b.store(tiles.b[0], fetch_b.load(0));
  __syncthreads();
  for (unsigned k = 0, half = 0; k < depth; k += tile_depth, half ^= 1) {
    const typename T::Four next_a = fetch_a.load(k + tile_depth), next_b = fetch_b.load(k + tile_depth);
#pragma unroll 2
    for (unsigned i = 0; i < tile_depth; ++i) {
      float left[8], right[8];
      read_eight(tiles.a[half][i], y, left);
      read_eight(tiles.b[half][i], x, right);
#pragma unroll
      for (unsigned r = 0; r < 8; ++r)
#pragma unroll
        for (unsigned s = 0; s < 8; ++s) sums[r][s] = fmaf(left[r], right[s], sums[r][s]);
    }
    fetch_a.store(tiles.a[half ^ 1], next_a);
    fetch_b.store(tiles.b[half ^ 1], next_b);
    __syncthreads();
  }

  const Size start = tiles.place.matrix * shape.c_step;
  c += start;
  const bool quads = reinterpret_cast<Size>(c) % (4 * sizeof(C)) == 0 && shape.columns % 4 == 0;
  const bool ends = epilogue.any(), add = shape.first != 0 && !ends;
  const unsigned first = tiles.place.row + y, at = tiles.place.column + x;
  const unsigned low = at < shape.columns ? shape.columns - at : 0, high = low > 64 ? low - 64 : 0;
  C* to = c + Size(first) * shape.columns + at;
#pragma unroll
  for (unsigned r = 0; r < 8; ++r) {
    if (r == 4) to += Size(60) * shape.columns;
    const unsigned line = first + r % 4 + r / 4 * 64;
    if (line < shape.rows) {
      if (ends)
        finish(sums[r], reinterpret_cast<float(*)[256]>(tiles.a), epilogue, start + Size(line) * shape.columns, shape.columns,
               [at](unsigned i) { return at + i % 4 + i / 4 * 64; });
      write_four<T>(to, &sums[r][0], low, quads, add);
      write_four<T>(to + 64, &sums[r][4], high, quads, add);
    }
    to += shape.columns;
  }
}
