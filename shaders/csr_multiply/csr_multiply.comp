#version 460
// Computes rows of the product of a sparse matrix and a vector. 2^lanes_log2 invocations share a row.
#include "span.glsl"
#include "flat.glsl"
#include "csr.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan columns;
  ConstFloatSpan values;
  ConstFloatSpan x;
  ConstFloatSpan blocks;
  FloatSpan y;
  uint lanes_log2;
};

// Returns the blocks between `first` and `last`: from the next whole one up to the last whole one.
uvec2 whole_blocks(uint first, uint last) {
  return uvec2((first >> block_log2) + ((first & (block_size - 1)) == 0 ? 0 : 1), last >> block_log2);
}

void main() {
  const uint row = flat_unit(lanes_log2), lanes = 1 << lanes_log2, lane = gl_LocalInvocationID.x & (lanes - 1);
  const bool exists = row < y.size.x;
  float sum = 0.0;
  if (exists) {
    const uint count = values.size.x;
    const uint first = min(offsets.data.at[row], count), last = max(min(offsets.data.at[row + 1], count), first);
    if (last - first < 2 * block_size) {
      sum = products_of(columns, values, x, first, last, lane, lanes);
    } else {
      const uvec2 whole = whole_blocks(first, last);
      sum = products_of(columns, values, x, first, whole.x << block_log2, lane, lanes) +
            products_of(columns, values, x, whole.y << block_log2, last, lane, lanes);
      if (whole.y - whole.x < 2 * block_size) {
        sum += sum_of_blocks(blocks.data, whole.x, whole.y, lane, lanes);
      } else {
        const uvec2 second = whole_blocks(whole.x, whole.y);
        const uint of_values = count >> block_log2;
        sum += sum_of_blocks(blocks.data, whole.x, second.x << block_log2, lane, lanes) +
               sum_of_blocks(blocks.data, second.y << block_log2, whole.y, lane, lanes) +
               sum_of_blocks(blocks.data, of_values + second.x, of_values + second.y, lane, lanes);
      }
    }
  }
  const float all = team_result(sum, lanes_log2);
  if (lane == 0 && exists) y.data.at[row] = all;
}
