#version 460
// Step 1: resets the counts of links and the summary.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"

layout(push_constant) uniform Arguments {
  WordSpan degrees;
  SummarySpan summary;
  uint nodes;
};

void main() {
  const uint node = flat_unit(0);
  if (node < nodes) {
    degrees.data.at[node] = 0;
    if (degrees.size != uvec2(nodes, 0))  // with weights
      for (uint part = 1; part < 4; ++part) part_of_sum(degrees, part, nodes, node).at[0] = 0;
  }
  if (node == 0) summary.data.at[0] = Summary(0, 0.0, nodes == 0 ? 1 : 0, 0);
}
