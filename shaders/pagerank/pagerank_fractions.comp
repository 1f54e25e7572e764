#version 460
// With weights, step 5: divides the weight of each link by the sum of the weights of its source.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan weights;
  ConstWordSpan sources;
  ConstWordSpan degrees;
  FloatSpan shares;
  uint nodes;
};

void main() {
  const uvec2 link = plus(flat_item(0), uvec2(gl_GlobalInvocationID.x, 0));
  if (!is_less(link, sources.size)) return;
  const uint source = ConstWords(element(uvec2(sources.data), link)).at[0];
  float fraction = 0.0;
  if (source < nodes && degrees.data.at[source] != 0) {
    const float low = float(part_of_sum(degrees, 1, nodes, source).at[0]);
    const float middle = float(part_of_sum(degrees, 2, nodes, source).at[0]);
    const float high = float(part_of_sum(degrees, 3, nodes, source).at[0]);
    const float sum = high * 4294967296.0 + (middle + low / 4294967296.0);
    const uvec2 weight = weight_below(degrees.data.at[source], weight_of(weights, link));
    if (weight.y < 126) fraction = float(weight.x) * uintBitsToFloat((127 - weight.y) << 23) / sum;
  }
  Floats(element(part_address(shares, 5, nodes), link)).at[0] = fraction;
}
