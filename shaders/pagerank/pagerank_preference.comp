#version 460
// Personalization, first: adds up the preferences of each 256 nodes.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"
#define PARTIAL float
float combine(float a, float b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan preferences;
  FloatSpan partials;
  uint nodes;
};

void main() {
  const uint node = flat_unit(0);
  const float sum = team_result(node < nodes ? preference(preferences, node) : 0.0, 8);
  if (gl_LocalInvocationID.x == 0 && node < nodes) {
    partials.data.at[2 * flat_unit(8)] = sum;
    partials.data.at[2 * flat_unit(8) + 1] = 0.0;
  }
}
