// Declarations that the kernels of PageRank share.
// An iteration adds a change to each rank. The links carry the changes, not the ranks: a change is rounded relative to
// itself, so the changes shrink by the damping in each iteration, down to any tolerance.
// Scratch memory `shares` has four parts of nodes + 1 numbers:
//   0, 1: the change that each link of a node carries, read and written in turns; the last number is 0, which links
//         from nodes that do not exist carry
//   2:    1 / links of each node, 0 for a node without links
//   3:    the part of each rank that its float32 does not hold
//   4:    with a personalization only: the preference of each node, divided by the sum of all
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstWords { uint at[]; };
struct WordSpan {
  Words data;
  uvec2 size;
};
struct ConstWordSpan {
  ConstWords data;
  uvec2 size;
};

struct Summary {
  uint iterations;
  float residual;
  uint converged;
  uint ignored_links;
};
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Summaries { Summary at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstSummaries { Summary at[]; };
struct SummarySpan {
  Summaries data;
  uvec2 size;
};
struct ConstSummarySpan {
  ConstSummaries data;
  uvec2 size;
};

const uint links_per_block = 2048;

// Adds `x` to `sum`, which exceeds the exact sum by `excess` (Kahan). The error does not grow with the number of
// additions. Without `precise` a compiler may simplify `excess` to zero.
void add(inout precise vec4 sum, inout precise vec4 excess, vec4 x) {
  precise const vec4 corrected = x - excess;
  precise const vec4 next = sum + corrected;
  excess = (next - sum) - corrected;
  sum = next;
}

float total_of(vec4 sums) { return (sums.x + sums.y) + (sums.z + sums.w); }

uvec2 part_address(FloatSpan shares, uint part, uint nodes) {
  return element(uvec2(shares.data), product(part, nodes + 1));
}

bool is_personal(FloatSpan shares, uint nodes) { return is_less(product(4, nodes + 1), shares.size); }

// Negative numbers, NaN and infinity count as 0: the host checks only memory that it can read.
float preference(ConstFloatSpan preferences, uint node) {
  const uint bits = floatBitsToUint(preferences.data.at[node]);
  return bits < 0x7f800000 ? uintBitsToFloat(bits) : 0.0;
}

// The links of a node: [first, last), empty where the offsets make no sense.
uvec2 links_of(ConstWordSpan offsets, ConstWordSpan sources, uint node) {
  const uint end = sources.size.x;
  return min(uvec2(offsets.data.at[node], offsets.data.at[node + 1]), uvec2(end));
}
