#version 460
// Step 2: counts the links that leave each node.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan sources;
  WordSpan degrees;
  SummarySpan summary;
  uint nodes;
};

void main() {
  const uvec2 first = flat_item(0);
  if (!is_less(plus(first, uvec2(gl_GlobalInvocationID.x, 0)), sources.size)) return;
  const uint source = ConstWords(element(uvec2(sources.data), first)).at[gl_GlobalInvocationID.x];
  if (source < nodes)
    atomicAdd(degrees.data.at[source], 1);
  else
    atomicAdd(summary.data.at[0].ignored_links, 1);
}
