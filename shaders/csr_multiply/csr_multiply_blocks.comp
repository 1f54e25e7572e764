#version 460
// Adds up the products of blocks of 1024 elements of one row, or at level 1 the sums of 1024 such blocks.
#include "span.glsl"
#include "flat.glsl"
#include "csr.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan columns;
  ConstFloatSpan values;
  ConstFloatSpan x;
  FloatSpan blocks;
  uint level;
};

// Returns the last row that begins at element `first` or before.
uint row_of(uint first) {
  uint low = 0, high = offsets.size.x - 1;
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    if (offsets.data.at[middle] <= first)
      low = middle;
    else
      high = middle;
  }
  return low;
}

void main() {
  const uint block = flat_unit(8), size_log2 = (level + 1) * block_log2, of_values = values.size.x >> block_log2;
  if (offsets.size.x < 2 || block >= values.size.x >> size_log2) return;
  const uint first = block << size_log2;
  if (offsets.data.at[row_of(first) + 1] - first < 1 << size_log2) return;
  const uint lane = gl_LocalInvocationID.x;
  const float mine =
      level == 0 ? products_of(columns, values, x, first, first + block_size, lane, 256)
                 : sum_of_blocks(ConstFloats(uvec2(blocks.data)), block << block_log2, (block + 1) << block_log2, lane, 256);
  const float all = team_result(mine, 8);
  if (lane == 0) blocks.data.at[level * of_values + block] = all;
}
