#version 460
// Computes the force on each node. A workgroup has 64 nodes. An invocation adds up the repulsion of a sixteenth of the other nodes
// on four nodes, so that a body that it reads serves four; adjacent invocations need the same bodies. Then four invocations share a
// node, each adding up a quarter of its links. Sums of at most 64 terms are added up, which bounds the rounding error.
#include "span.glsl"
#include "flat.glsl"
#include "force_layout.glsl"

// As many adjacent invocations add up the same bodies.
#define SHARING 16u
#include "lanes.glsl"

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

const uint slices = 16;
shared vec2 repelled[64 * slices], pulled[256];

uint nodes() { return offsets.size.x - 1; }

// Four nodes, 16 apart.
struct Four {
  vec4 x;
  vec4 y;
};
uvec4 four_nodes(uint node) { return node + uvec4(0, 16, 32, 48); }
float body(uint part, uint node) { return node < nodes() ? bodies.data.at[part * nodes() + node] : 0.0; }

// Adds the sums of m d / d^2 over the nodes from `first` on, at most 64; d is the vector from the other node.
void add_repulsion(inout Four sums, Four at, uint node, uint first) {
  const uint n = nodes(), last = min(first + 64, n);
  const uvec4 mine = four_nodes(node);
  Four part = Four(vec4(0.0), vec4(0.0));
  for (uint begin = first; begin < last; begin += lanes()) {
    const uint read = min(begin + lane(), last - 1), end = min(begin + lanes(), last);
    const vec3 other = vec3(bodies.data.at[read], bodies.data.at[n + read], bodies.data.at[2 * n + read]);
    for (uint j = begin; j < end; ++j) {
      vec4 x = at.x - of_lane(other.x, j - begin);
      const vec4 y = at.y - of_lane(other.y, j - begin);
      vec4 square = x * x + y * y;
      const bvec4 is_same = lessThan(square, vec4(same_square));
      const vec4 aside = mix(mix(vec4(0.0), vec4(-near_distance), lessThan(mine, uvec4(j))), vec4(near_distance),
                             greaterThan(mine, uvec4(j)));
      x = mix(x, aside, is_same);
      square = max(square, vec4(near_square));
      const vec4 share = of_lane(other.z, j - begin) / square;
      part.x += x * share;
      part.y += y * share;
    }
  }
  sums.x += part.x;
  sums.y += part.y;
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
  const uint me = invocation_index(), n = nodes(), first_node = gl_WorkGroupID.x << 6;
  {
    const uint slice = me >> 4, node = first_node + (me & 15);
    const uvec4 mine = four_nodes(node);
    const Four at = Four(vec4(body(0, mine.x), body(0, mine.y), body(0, mine.z), body(0, mine.w)),
                         vec4(body(1, mine.x), body(1, mine.y), body(1, mine.z), body(1, mine.w)));
    Four sums = Four(vec4(0.0), vec4(0.0));
    for (uint first = 64 * slice; first < n; first += 64 * slices) add_repulsion(sums, at, node, first);
    for (uint i = 0; i < 4; ++i) repelled[64 * slice + 16 * i + (me & 15)] = vec2(sums.x[i], sums.y[i]);
  }
  const uint quarter = me >> 6, node = first_node + (me & 63);
  vec2 pulls = vec2(0.0), at = vec2(0.0);
  if (node < n) {
    at = vec2(body(0, node), body(1, node));
    const uvec2 links = links_of(offsets, targets.size.x, node);
    const uint last = links.x + links.y;
    for (uint i = 64 * quarter; i < links.y; i += 256) pulls += pull_of(at, links.x + i, last);
  }
  pulled[me] = pulls;
  barrier();
  if (quarter != 0 || node >= n) return;
  vec2 repulsions = vec2(0.0);
  for (uint slice = 0; slice < slices; ++slice) repulsions += repelled[64 * slice + me];
  pulls = (pulled[me] + pulled[me + 64]) + (pulled[me + 128] + pulled[me + 192]);
  const float mass = body(2, node);
  const float distance = strong != 0 ? 1.0 : max(size_of(at), 9.5367431640625e-7);  // 2^-20
  const vec2 force = repulsion * mass * repulsions + pulls - at * (gravity * mass / distance);
  const bool counts = mass > 0.0 && is_force(force.x) && is_force(force.y);
  forces.data.at[node] = counts ? force.x : 0.0;
  forces.data.at[n + node] = counts ? force.y : 0.0;
}
