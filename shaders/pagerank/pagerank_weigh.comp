#version 460
// With weights, step 3: adds up the weights of the links that leave each node. Additions carry into the next
// word, so the sums do not depend on the order of the links.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan weights;
  ConstWordSpan sources;
  WordSpan degrees;
  uint nodes;
};

void main() {
  const uvec2 link = plus(flat_item(0), uvec2(gl_GlobalInvocationID.x, 0));
  if (!is_less(link, sources.size)) return;
  const uint source = ConstWords(element(uvec2(sources.data), link)).at[0];
  if (source >= nodes) return;
  const uvec2 weight = weight_below(degrees.data.at[source], weight_of(weights, link));
  const uint shift = weight.y;
  uint high = 0, low = 0;
  if (shift < 32) {
    high = weight.x >> shift;
    if (shift > 0) low = weight.x << (32 - shift);
  } else if (shift < 64) {
    low = weight.x >> (shift - 32);
  }
  if (low != 0) {
    const uint before = atomicAdd(part_of_sum(degrees, 1, nodes, source).at[0], low);
    if (before + low < before) ++high;
  }
  if (high != 0) {
    const uint before = atomicAdd(part_of_sum(degrees, 2, nodes, source).at[0], high);
    if (before + high < before) atomicAdd(part_of_sum(degrees, 3, nodes, source).at[0], 1);
  }
}
