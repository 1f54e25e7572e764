// What the kernels of PageRank share. Scratch memory `shares` has three parts of nodes + 1 numbers: two of what each
// node gives to each node it links to, read and written in turns, and 1 / links of each node, 0 where it has none.
// The last number of the first two is 0: links from nodes that do not exist bring that.
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

uvec2 part_address(FloatSpan shares, uint part, uint nodes) {
  return element(uvec2(shares.data), product(part, nodes + 1));
}

// The links of a node: [first, last), empty where the offsets make no sense.
uvec2 links_of(ConstWordSpan offsets, ConstWordSpan sources, uint node) {
  const uint end = sources.size.x;
  return min(uvec2(offsets.data.at[node], offsets.data.at[node + 1]), uvec2(end));
}
