#version 460
// Step 3, with weights 4: gives each node the rank 1 / nodes, or the share of its preference.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"
#define PARTIAL float
float combine(float a, float b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan degrees;
  FloatSpan shares;
  FloatSpan ranks;
  FloatSpan partials;
  uint nodes;
  ConstFloatSpan preferences;
};

void main() {
  const uint node = flat_unit(0);
  float total = 0.0;
  if (preferences.size.x != 0) total = partials.data.at[2 * ((nodes + 255) / 256) + 1];
  float rank = 1.0 / float(nodes);
  if (total > 0.0 && node < nodes) rank = preference(preferences, node) / total;
  float dangling = 0.0;
  if (node < nodes) {
    const uint degree = degrees.data.at[node];
    const float part = degree == 0 ? 0.0 : has_weights(shares, nodes) ? 1.0 : 1.0 / float(degree);
    if (degree == 0) dangling = rank;
    ranks.data.at[node] = rank;
    Floats(part_address(shares, 0, nodes)).at[node] = rank * part;
    Floats(part_address(shares, 2, nodes)).at[node] = part;
    Floats(part_address(shares, 3, nodes)).at[node] = 0.0;
    if (has_preferences(shares, nodes)) Floats(part_address(shares, 4, nodes)).at[node] = rank;
  } else if (node == nodes) {
    Floats(part_address(shares, 0, nodes)).at[node] = 0.0;
    Floats(part_address(shares, 1, nodes)).at[node] = 0.0;
  }
  const float sum = team_result(dangling, 8);
  if (gl_LocalInvocationID.x == 0 && node < nodes) {
    partials.data.at[2 * flat_unit(8)] = 0.0;
    partials.data.at[2 * flat_unit(8) + 1] = sum;
  }
}
