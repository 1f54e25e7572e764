// Declarations that the kernels of PageRank share.
// An iteration adds a change to each rank. The links carry the changes, not the ranks: a change is rounded relative to
// itself, so the changes shrink by the damping in each iteration, down to any tolerance.
// Scratch memory `shares` has four parts of nodes + 1 numbers:
//   0, 1: the change that each link of a node carries, read and written alternately; the last number
//         is 0, for links from nodes that do not exist
//   2:    1 / links of each node, 0 for a node without links
//   3:    the part of each rank that its float32 does not hold
//   4:    with a personalization or weights only: the preference of each node, divided by the sum of all
// With weights, the weight of each link follows, divided by the sum of the weights of its source. Part 2 is then
// 1 for a node whose weights have a sum above 0.
// Scratch memory `degrees` holds the number of links of each node. With weights it has four parts of one word for each node:
//   0:       the bits of the largest weight, whose order is that of the weights
//   1, 2, 3: the sum of the weights as one integer, the low word first. Integers add up to the same bits in any order. The
//            unit is 2^-40 of the last bit of the largest weight, or less.

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

uvec2 part_address(ConstFloatSpan shares, uint part, uint nodes) {
  return element(uvec2(shares.data), product(part, nodes + 1));
}

bool has_preferences(FloatSpan shares, uint nodes) { return is_less(product(4, nodes + 1), shares.size); }
bool has_weights(FloatSpan shares, uint nodes) { return is_less(product(5, nodes + 1), shares.size); }
bool has_weights(ConstFloatSpan shares, uint nodes) { return is_less(product(5, nodes + 1), shares.size); }

// Returns the word of a node in a part of `degrees`.
Words part_of_sum(WordSpan degrees, uint part, uint nodes, uint node) {
  return Words(element(uvec2(degrees.data), plus(product(part, nodes), uvec2(node, 0))));
}
ConstWords part_of_sum(ConstWordSpan degrees, uint part, uint nodes, uint node) {
  return ConstWords(element(uvec2(degrees.data), plus(product(part, nodes), uvec2(node, 0))));
}

// Returns the bits of the weight of a link. Negative numbers, NaN and infinity count as 0.
uint weight_of(ConstFloatSpan weights, uvec2 link) {
  const uint bits = ConstWords(element(uvec2(weights.data), link)).at[0];
  return bits < 0x7f800000 ? bits : 0;
}

// The 24 bits of a weight at the top of a word, and the difference of its exponent to that of the largest
// weight.
uvec2 weight_below(uint largest, uint bits) {
  const uint mantissa = (bits & 0x7fffff) | (bits >= 0x800000 ? 0x800000 : 0);
  return uvec2(mantissa << 8, max(largest >> 23, 1) - max(bits >> 23, 1));
}

// Returns 0 for negative numbers, NaN and infinity, because the host checks only memory that it can read.
float preference(ConstFloatSpan preferences, uint node) {
  const uint bits = floatBitsToUint(preferences.data.at[node]);
  return bits < 0x7f800000 ? uintBitsToFloat(bits) : 0.0;
}

// Returns the links of a node, [first, last); none if the offsets are invalid.
uvec2 links_of(ConstWordSpan offsets, ConstWordSpan sources, uint node) {
  const uint end = sources.size.x;
  return min(uvec2(offsets.data.at[node], offsets.data.at[node + 1]), uvec2(end));
}
