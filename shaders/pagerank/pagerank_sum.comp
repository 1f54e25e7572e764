#version 460
// One iteration, last: the change and the dangling rank of all nodes; whether that is the end. One workgroup.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"
#define PARTIAL vec2
vec2 combine(vec2 a, vec2 b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan partials;
  SummarySpan summary;
  uint groups;
  uint counts;  // 0: the start, which is no iteration
  float tolerance;
};

void main() {
  if (summary.data.at[0].converged != 0) return;
  vec2 mine = vec2(0.0);
  for (uint i = gl_LocalInvocationID.x; i < groups; i += 256)
    mine += vec2(partials.data.at[2 * i], partials.data.at[2 * i + 1]);
  const vec2 all = team_result(mine, 8);
  if (gl_LocalInvocationID.x != 0) return;
  partials.data.at[2 * groups] = all.y;
  if (counts == 0) return;
  summary.data.at[0].iterations += 1;
  summary.data.at[0].residual = all.x;
  if (all.x <= tolerance) summary.data.at[0].converged = 1;
}
