#version 460
// Moves each node by its force and keeps the force for the next iteration; when a job begins, sets the bodies only.
#include "span.glsl"
#include "flat.glsl"
#include "force_layout.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan targets;
  FloatSpan positions;
  FloatSpan bodies;
  ConstFloatSpan forces;
  FloatSpan state;
  uint begins;
};

void main() {
  const uint node = flat_unit(0), nodes = offsets.size.x - 1;
  if (node >= nodes) return;
  vec2 at = vec2(positions.data.at[2 * node], positions.data.at[2 * node + 1]);
  float mass;
  if (begins != 0) {
    mass = 1.0 + float(links_of(offsets, targets.size.x, node).y);
  } else {
    mass = bodies.data.at[2 * nodes + node];
    const vec2 force = vec2(forces.data.at[node], forces.data.at[nodes + node]);
    const float size = size_of(force), swing = size_of(force - force_before(state, nodes, node));
    const float speed = state.data.at[2 * nodes];
    state.data.at[node] = force.x;
    state.data.at[nodes + node] = force.y;
    if (mass > 0.0 && size > 0.0) {
      at += force * min(0.1 * speed / (1.0 + speed * (swing > 0.0 ? sqrt(swing) : 0.0)), 10.0 / size);
      positions.data.at[2 * node] = at.x;
      positions.data.at[2 * node + 1] = at.y;
    }
  }
  const bool exists = is_coordinate(at.x) && is_coordinate(at.y);
  bodies.data.at[node] = exists ? at.x : 0.0;
  bodies.data.at[nodes + node] = exists ? at.y : 0.0;
  bodies.data.at[2 * nodes + node] = exists ? mass : 0.0;
}
