// Declarations that the kernels of force_layout share. Scratch memory `bodies` has x of all nodes, y of all nodes and their
// masses. A node whose position does not count has zeros. `forces` has x of all nodes, then y. `state` has the forces of
// the iteration before in the same order, the speed, the swinging and the traction.
#include "float_bits.glsl"

const uint links_that_count = 65536;

// Returns the first link of a node and the number of links; none if the offsets are invalid.
uvec2 links_of(ConstWordSpan offsets, uint links, uint node) {
  const uint first = min(offsets.data.at[node], links), last = min(offsets.data.at[node + 1], links);
  return uvec2(first, last > first ? min(last - first, links_that_count) : 0);
}

bool is_coordinate(float v) { return is_below(v, 1073741824.0); }          // 2^30
bool is_force(float v) { return is_below(v, 1152921504606846976.0); }      // 2^60

// Returns the force of the iteration before.
vec2 force_before(FloatSpan state, uint nodes, uint node) {
  const vec2 force = vec2(state.data.at[node], state.data.at[nodes + node]);
  return is_force(force.x) && is_force(force.y) ? force : vec2(0.0);
}

float size_of(vec2 v) {
  const float square = dot(v, v);
  return square > 0.0 ? sqrt(square) : 0.0;
}
