#version 460
// One iteration, in graphs with many links, first: adds up the changes of each block of 2048 links, if all
// lead to one node. An invocation of the next step then has at most 4096 links and as many blocks to add.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"
#define PARTIAL float
float combine(float a, float b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan sources;
  ConstFloatSpan shares;
  FloatSpan blocks;
  ConstSummarySpan summary;
  uint nodes;
  uint turn;
};

// Returns the last node whose links begin at `link` or before.
uint node_of(uint link) {
  uint low = 0, high = nodes;
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    if (offsets.data.at[middle] <= link)
      low = middle;
    else
      high = middle;
  }
  return low;
}

void main() {
  if (summary.data.at[0].converged != 0) return;
  const uint block = flat_unit(8);
  if (block >= blocks.size.x) return;
  const uint first = block * links_per_block;
  if (offsets.data.at[node_of(first) + 1] - first < links_per_block) return;

  ConstFloats given = ConstFloats(element(uvec2(shares.data), product(turn, nodes + 1)));
  ConstWords links = ConstWords(element(uvec2(sources.data), uvec2(first, 0)));
  float sum = 0.0;
  if (has_weights(shares, nodes)) {
    ConstFloats fractions = ConstFloats(element(part_address(shares, 5, nodes), uvec2(first, 0)));
    for (uint i = gl_LocalInvocationID.x; i < links_per_block; i += 256)
      sum += fractions.at[i] * given.at[min(links.at[i], nodes)];
  } else {
    for (uint i = gl_LocalInvocationID.x; i < links_per_block; i += 256) sum += given.at[min(links.at[i], nodes)];
  }
  const float all = team_result(sum, 8);
  if (gl_LocalInvocationID.x == 0) blocks.data.at[block] = all;
}
