#version 460
// With weights, step 2: finds the largest weight of the links that leave each node.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan weights;
  ConstWordSpan sources;
  WordSpan degrees;
  SummarySpan summary;
  uint nodes;
};

void main() {
  const uvec2 link = plus(flat_item(0), uvec2(gl_GlobalInvocationID.x, 0));
  if (!is_less(link, sources.size)) return;
  const uint source = ConstWords(element(uvec2(sources.data), link)).at[0];
  if (source < nodes)
    atomicMax(degrees.data.at[source], weight_of(weights, link));
  else
    atomicAdd(summary.data.at[0].ignored_links, 1);
}
