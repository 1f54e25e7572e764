// Declarations that the kernels of csr_multiply share. `blocks` has the sums of the products of each 1024 elements, then the
// sums of each 1024 of these, each only if all of its elements belong to one row. An invocation that computes a row then
// adds at most 2047 products, 2047 sums of blocks and 4096 sums of those.

const uint block_log2 = 10;
const uint block_size = 1 << block_log2;

#define PARTIAL float
float combine(float a, float b) { return a + b; }
#include "team.glsl"

float total_of(float parts[4]) { return (parts[0] + parts[1]) + (parts[2] + parts[3]); }

// Returns the sum of the products of every `lanes`-th element from `first` + `lane` on, [first, last). A column that x does
// not have counts as 0.
float products_of(ConstWordSpan columns, ConstFloatSpan values, ConstFloatSpan x, uint first, uint last, uint lane,
                  uint lanes) {
  ConstWords column = ConstWords(element(uvec2(columns.data), uvec2(first, 0)));
  ConstFloats value = ConstFloats(element(uvec2(values.data), uvec2(first, 0)));
  const uint size = last - first;
  float parts[4] = float[](0.0, 0.0, 0.0, 0.0);
  for (uint i = lane; i < size; i += 4 * lanes)
    for (uint j = 0; j < 4; ++j) {
      const uint k = i + j * lanes;
      if (k >= size) continue;
      const uint at = column.at[k];
      if (at < x.size.x) parts[j] += value.at[k] * x.data.at[at];
    }
  return total_of(parts);
}

// The same of sums of blocks.
float sum_of_blocks(ConstFloats blocks, uint first, uint last, uint lane, uint lanes) {
  float parts[4] = float[](0.0, 0.0, 0.0, 0.0);
  for (uint i = first + lane; i < last; i += 4 * lanes)
    for (uint j = 0; j < 4; ++j)
      if (i + j * lanes < last) parts[j] += blocks.at[i + j * lanes];
  return total_of(parts);
}
