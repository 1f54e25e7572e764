// Products of four rows of x with one row of weights. Lane i of 32 adds the products i, i + 32, ...
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

extern "C" __global__ void __launch_bounds__(256)
    wye_quantized_matmul(wye_span<const float> x, wye_span<const unsigned char> weights, wye_span<float> y,
                         QuantizedProduct shape, BlockLayout layout) {
  const Size unit = flat_thread() / 32;
  const unsigned lane = threadIdx.x % 32, place = unsigned(unit / 256);
  const unsigned row = place % shape.tiles * 4;
  const Size column = Size(place / shape.tiles) * 256 + unit % 256;
  const bool has_unit = column < shape.columns && row < shape.rows;
  FourSums sums = {{0.0f, 0.0f, 0.0f, 0.0f}};
  if (has_unit) {
    const float* rows[4];
#pragma unroll
    for (unsigned r = 0; r < 4; ++r) rows[r] = x.data + Size(min(row + r, shape.rows - 1)) * shape.inner;
    const unsigned group = 1u << layout.group_log2, bytes = block_bytes(layout);
    const Byte* const first = weights.data + column * (shape.inner >> layout.group_log2) * bytes;
    for (unsigned i = lane; i < shape.inner; i += 32) {
      const Byte* const block = first + Size(i >> layout.group_log2) * bytes;
      const float weight = value_at(block, header_of(block, layout), i & (group - 1), layout);
#pragma unroll
      for (unsigned r = 0; r < 4; ++r) sums.at[r] = fmaf(weight, rows[r][i], sums.at[r]);
    }
  }
  const FourSums all = team_result(sums, 5);
#pragma unroll
  for (unsigned r = 0; r < 4; ++r)
    if (has_unit && lane == r && row + r < shape.rows) y[Size(row + r) * shape.columns + column] = all.at[r];
}
