#pragma once
// Products of four rows of x with one row of weights. Lane i of 32 adds the products i, i + 32, ..., or if x is blocks q8_0, the
// products of the blocks i, i + 32, ... of x, which are sums of integers.
#include "quantized.cuh"
#include "team.cuh"

struct QuantizedProduct {
  unsigned rows;
  unsigned columns;
  unsigned inner;
  unsigned tiles;  // of four rows
};

struct FourSums {
  float at[4];
};
__device__ FourSums shuffled(FourSums v, int bits) {
  return {{shuffled(v.at[0], bits), shuffled(v.at[1], bits), shuffled(v.at[2], bits), shuffled(v.at[3], bits)}};
}
__device__ FourSums combine(FourSums a, FourSums b) {
  return {{a.at[0] + b.at[0], a.at[1] + b.at[1], a.at[2] + b.at[2], a.at[3] + b.at[3]}};
}

// Rows of floats.
struct FloatRows {
  const float* first;

  __device__ void add_products(FourSums& sums, unsigned lane, unsigned row, const Byte* weights,
                               const QuantizedProduct& shape, BlockLayout layout) const {
    const float* rows[4];
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) rows[r] = first + Size(min(row + r, shape.rows - 1)) * shape.inner;
    const unsigned group = 1u << layout.group_log2, bytes = block_bytes(layout);
    for (unsigned i = lane; i < shape.inner; i += 32) {
      const Byte* const block = weights + Size(i >> layout.group_log2) * bytes;
      const float weight = value_at(block, header_of(block, layout), i & (group - 1), layout);
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) sums.at[r] = fmaf(weight, rows[r][i], sums.at[r]);
    }
  }
};

// Rows of blocks q8_0.
struct Int8Rows {
  const Byte* first;

  __device__ void add_products(FourSums& sums, unsigned lane, unsigned row, const Byte* weights,
                               const QuantizedProduct& shape, BlockLayout layout) const {
    const unsigned blocks = shape.inner / 32, bytes = block_bytes(layout);
    const bool even_x = (Size(first) & 1) == 0, even_weights = (Size(weights) & 1) == 0;
    const Byte* rows[4];
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) rows[r] = first + Size(min(row + r, shape.rows - 1)) * blocks * 34;
    for (unsigned k = lane; k < blocks; k += 32) {
      const Byte* const block = weights + Size(k * 32 >> layout.group_log2) * bytes;
      const BlockHeader header = header_of(block, layout);
      const unsigned from = k * 32 & ((1u << layout.group_log2) - 1);
      int products[4] = {}, plain[4] = {};
#pragma unroll
      for (unsigned i = 0; i < 32; i += 4) {
        const int q = four_integers(block + layout.header, even_weights, from + i, layout);
#pragma unroll
        for (unsigned r = 0; r < 4; ++r) {
          const int v = four_bytes(rows[r] + Size(k) * 34 + 2 + i, even_x);
          products[r] = add_products_of_bytes(q, v, products[r]);
          plain[r] = add_products_of_bytes(0x01010101, v, plain[r]);
        }
      }
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) {
        float value = header.scale * float(products[r] - int(header.zero) * plain[r]);
        if (layout.type == q4_1) value = fmaf(header.minimum, float(plain[r]), value);
        const float scale = HalfElement::term(HalfElement::Number(short_at(rows[r] + Size(k) * 34)));
        sums.at[r] = fmaf(scale, value, sums.at[r]);
      }
    }
  }
};

template <class Rows>
__device__ void multiply(const Rows& x, const Byte* weights, wye_span<float> y, const QuantizedProduct& shape,
                         BlockLayout layout) {
  const Size unit = flat_thread() / 32;
  const unsigned lane = threadIdx.x % 32, place = unsigned(unit / 256);
  const unsigned row = place % shape.tiles * 4;
  const Size column = Size(place / shape.tiles) * 256 + unit % 256;
  const bool has_unit = column < shape.columns && row < shape.rows;
  FourSums sums = {{0.0f, 0.0f, 0.0f, 0.0f}};
  if (has_unit)
    x.add_products(sums, lane, row, weights + column * (shape.inner >> layout.group_log2) * block_bytes(layout), shape,
                   layout);
  const FourSums all = team_result(sums, 5);
#pragma unroll
  for (unsigned r = 0; r < 4; ++r)
    if (has_unit && lane == r && row + r < shape.rows) y[Size(row + r) * shape.columns + column] = all.at[r];
}
