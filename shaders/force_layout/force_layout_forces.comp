#version 460
// Computes the force on each node. A workgroup has 64 nodes; four invocations share a node, each adding up a quarter of the
// other nodes and of the links. Adjacent invocations read the same body. Sums of at most 64 terms are added up, which bounds
// the rounding error.
#include "span.glsl"
#include "flat.glsl"
#include "force_layout.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan targets;
  ConstFloatSpan weights;
  ConstFloatSpan bodies;
  FloatSpan forces;
  float repulsion;
  float gravity;
  uint strong;
};

const float near_distance = 0.0078125;          // 2^-7
const float near_square = 0.00006103515625;     // 2^-14
const float same_square = 9.094947017729282e-13;  // 2^-40

shared vec2 repelled[256], pulled[256];

uint nodes() { return offsets.size.x - 1; }

// Returns the sum of m d / d^2 over the nodes from `first` on, at most 64; d is the vector from the other node.
vec2 repulsion_by(vec2 at, uint node, uint first) {
  const uint n = nodes(), last = min(first + 64, n);
  vec2 sum = vec2(0.0);
  for (uint j = first; j < last; ++j) {
    vec2 d = at - vec2(bodies.data.at[j], bodies.data.at[n + j]);
    float square = dot(d, d);
    if (square < same_square) d.x = node > j ? near_distance : node < j ? -near_distance : 0.0;
    square = max(square, near_square);
    sum += d * (bodies.data.at[2 * n + j] / square);
  }
  return sum;
}

// Returns the sum of the pulls of the links from `first` on, at most 64.
vec2 pull_of(vec2 at, uint first, uint last) {
  const uint n = nodes();
  vec2 sum = vec2(0.0);
  last = last - first > 64 ? first + 64 : last;
  for (uint k = first; k < last; ++k) {
    const uint j = ConstWords(element(uvec2(targets.data), uvec2(k, 0))).at[0];
    if (j >= n || bodies.data.at[2 * n + j] == 0.0) continue;
    float weight = 1.0;
    if (weights.size != uvec2(0)) {
      const uint bits = ConstWords(element(uvec2(weights.data), uvec2(k, 0))).at[0];
      weight = bits < 0x7f800000 ? uintBitsToFloat(bits) : 0.0;
    }
    sum += weight * (vec2(bodies.data.at[j], bodies.data.at[n + j]) - at);
  }
  return sum;
}

void main() {
  const uint me = gl_LocalInvocationID.x, lane = me >> 6, n = nodes();
  const uint node = (gl_WorkGroupID.x << 6) + (me & 63);
  vec2 repulsions = vec2(0.0), pulls = vec2(0.0), at = vec2(0.0);
  if (node < n) {
    at = vec2(bodies.data.at[node], bodies.data.at[n + node]);
    for (uint first = 64 * lane; first < n; first += 256) repulsions += repulsion_by(at, node, first);
    const uvec2 links = links_of(offsets, targets.size.x, node);
    const uint last = links.x + links.y;
    for (uint i = 64 * lane; i < links.y; i += 256) pulls += pull_of(at, links.x + i, last);
  }
  repelled[me] = repulsions;
  pulled[me] = pulls;
  barrier();
  if (lane != 0 || node >= n) return;
  repulsions = (repelled[me] + repelled[me + 64]) + (repelled[me + 128] + repelled[me + 192]);
  pulls = (pulled[me] + pulled[me + 64]) + (pulled[me + 128] + pulled[me + 192]);
  const float mass = bodies.data.at[2 * n + node];
  const float distance = strong != 0 ? 1.0 : max(size_of(at), 9.5367431640625e-7);  // 2^-20
  const vec2 force = repulsion * mass * repulsions + pulls - at * (gravity * mass / distance);
  const bool counts = mass > 0.0 && is_force(force.x) && is_force(force.y);
  forces.data.at[node] = counts ? force.x : 0.0;
  forces.data.at[n + node] = counts ? force.y : 0.0;
}
