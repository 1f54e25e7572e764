#version 460
// One iteration, last: adds up |change| of all nodes, and the changes of those without links, which all nodes share.
// Decides whether the ranks have converged. One workgroup.
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
  uint counts;  // 0: the start, 1: an iteration, 2: preferences
  float tolerance;
};

void main() {
  if (summary.data.at[0].converged != 0) return;
  vec4 mine = vec4(0.0), excess = vec4(0.0);
  for (uint i = gl_LocalInvocationID.x; i < groups; i += 256)
    add(mine, excess, vec4(partials.data.at[2 * i], partials.data.at[2 * i + 1], 0.0, 0.0));
  const vec2 all = team_result(mine.xy, 8);
  if (gl_LocalInvocationID.x != 0) return;
  if (counts == 2) {  // the preferences
    partials.data.at[2 * groups + 1] = all.x;
    return;
  }
  // The first change is damping (sum of shares + dangling rank / nodes) + (1 - damping) / nodes - 1 / nodes.
  partials.data.at[2 * groups] = counts == 0 ? all.y - 1.0 : all.y;
  if (counts == 0) return;
  summary.data.at[0].iterations += 1;
  summary.data.at[0].residual = all.x;
  if (all.x <= tolerance) summary.data.at[0].converged = 1;
}
