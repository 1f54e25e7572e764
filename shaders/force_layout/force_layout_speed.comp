#version 460
// Computes the swinging and the traction of all nodes and the speed that follows. One workgroup.
#include "span.glsl"
#include "flat.glsl"
#include "force_layout.glsl"
#define PARTIAL vec2
vec2 combine(vec2 a, vec2 b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan bodies;
  ConstFloatSpan forces;
  FloatSpan state;
  float tolerance;
};

const float fastest = 1048576.0;  // 2^20

void main() {
  const uint nodes = forces.size.x / 2;
  vec2 sums = vec2(0.0);
  for (uint i = gl_LocalInvocationID.x; i < nodes; i += 256) {
    const vec2 force = vec2(forces.data.at[i], forces.data.at[nodes + i]), before = force_before(state, nodes, i);
    sums += bodies.data.at[2 * nodes + i] * vec2(size_of(force - before), 0.5 * size_of(force + before));
  }
  const vec2 all = team_result(sums, 8);
  if (gl_LocalInvocationID.x != 0) return;
  const float swinging = all.x, traction = all.y, before = state.data.at[2 * nodes];
  const bool continues = is_below(before, fastest) && before > 0.0;
  float speed = continues ? min(1.5 * before, fastest) : swinging > 0.0 ? fastest : 0.0;
  if (swinging > 0.0) speed = min(tolerance * traction / swinging, speed);
  state.data.at[2 * nodes] = speed;
  state.data.at[2 * nodes + 1] = swinging;
  state.data.at[2 * nodes + 2] = traction;
}
