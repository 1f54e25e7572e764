#version 460
// One iteration: each node adds up what its links bring. Leaves, for each 256 nodes, how much their ranks changed and
// how much rank lies on those of them that link nowhere.
#include "span.glsl"
#include "flat.glsl"
#include "pagerank.glsl"
#define PARTIAL vec2
vec2 combine(vec2 a, vec2 b) { return a + b; }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstWordSpan offsets;
  ConstWordSpan sources;
  FloatSpan shares;
  ConstFloatSpan blocks;
  FloatSpan ranks;
  FloatSpan partials;
  ConstSummarySpan summary;
  uint nodes;
  uint turn;
  float damping;
};

// What links bring. Four sums, for speed and for the error, which grows with the length of each.
float given(ConstFloats shares_of, uvec2 links) {
  ConstWords link = ConstWords(element(uvec2(sources.data), uvec2(links.x, 0)));
  const uint count = links.y - links.x;
  vec4 sums = vec4(0.0);
  uint i = 0;
  for (; i + 4 <= count; i += 4)
    sums += vec4(shares_of.at[min(link.at[i], nodes)], shares_of.at[min(link.at[i + 1], nodes)],
                 shares_of.at[min(link.at[i + 2], nodes)], shares_of.at[min(link.at[i + 3], nodes)]);
  for (; i < count; ++i) sums.x += shares_of.at[min(link.at[i], nodes)];
  return (sums.x + sums.y) + (sums.z + sums.w);
}

float of_blocks(uvec2 range) {
  vec4 sums = vec4(0.0);
  uint i = range.x;
  for (; i + 4 <= range.y; i += 4)
    sums += vec4(blocks.data.at[i], blocks.data.at[i + 1], blocks.data.at[i + 2], blocks.data.at[i + 3]);
  for (; i < range.y; ++i) sums.x += blocks.data.at[i];
  return (sums.x + sums.y) + (sums.z + sums.w);
}

void main() {
  if (summary.data.at[0].converged != 0) return;
  const uint node = flat_unit(0);
  vec2 partial = vec2(0.0);
  if (node < nodes) {
    ConstFloats shares_of = ConstFloats(part_address(shares, turn, nodes));
    const uvec2 links = links_of(offsets, sources, node);
    float sum = 0.0;
    if (links.y > links.x && links.y - links.x < 2 * links_per_block) {
      sum = given(shares_of, links);
    } else if (links.y > links.x) {
      const uint begun = links.x % links_per_block == 0 ? 0 : 1;
      const uvec2 whole = uvec2(links.x / links_per_block + begun, links.y / links_per_block);
      sum = of_blocks(whole) + given(shares_of, uvec2(links.x, whole.x * links_per_block)) +
            given(shares_of, uvec2(whole.y * links_per_block, links.y));
    }
    const float dangling = partials.data.at[2 * ((nodes + 255) / 256)];
    const float before = ranks.data.at[node];
    const float rank = (1.0 - damping) / float(nodes) + damping * (sum + dangling / float(nodes));
    const float part = Floats(part_address(shares, 2, nodes)).at[node];
    ranks.data.at[node] = rank;
    Floats(part_address(shares, 1 - turn, nodes)).at[node] = rank * part;
    partial = vec2(abs(rank - before), part == 0.0 ? rank : 0.0);
  }
  const vec2 sums = team_result(partial, 8);
  if (gl_LocalInvocationID.x == 0 && node < nodes) {
    partials.data.at[2 * flat_unit(8)] = sums.x;
    partials.data.at[2 * flat_unit(8) + 1] = sums.y;
  }
}
