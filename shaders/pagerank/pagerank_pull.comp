#version 460
// One iteration: computes the next change of each rank from the changes that the links carry, and adds it.
// Writes for each 256 nodes the sum of |change|, and the sum of the changes of nodes without links.
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

// Returns the sum of the weighted changes of links, added up in four sums.
float given_by_weights(ConstFloats shares_of, uvec2 links) {
  ConstWords link = ConstWords(element(uvec2(sources.data), uvec2(links.x, 0)));
  ConstFloats fraction = ConstFloats(element(part_address(shares, 5, nodes), uvec2(links.x, 0)));
  const uint count = links.y - links.x;
  vec4 sums = vec4(0.0), excess = vec4(0.0);
  uint i = 0;
  for (; i + 4 <= count; i += 4)
    add(sums, excess,
        vec4(fraction.at[i], fraction.at[i + 1], fraction.at[i + 2], fraction.at[i + 3]) *
            vec4(shares_of.at[min(link.at[i], nodes)], shares_of.at[min(link.at[i + 1], nodes)],
                 shares_of.at[min(link.at[i + 2], nodes)], shares_of.at[min(link.at[i + 3], nodes)]));
  for (; i < count; ++i) sums.x += fraction.at[i] * shares_of.at[min(link.at[i], nodes)];
  return total_of(sums);
}

// Returns the sum of the changes of links, added up in four sums.
float given(ConstFloats shares_of, uvec2 links) {
  if (has_weights(shares, nodes)) return given_by_weights(shares_of, links);
  ConstWords link = ConstWords(element(uvec2(sources.data), uvec2(links.x, 0)));
  const uint count = links.y - links.x;
  vec4 sums = vec4(0.0), excess = vec4(0.0);
  uint i = 0;
  for (; i + 4 <= count; i += 4)
    add(sums, excess,
        vec4(shares_of.at[min(link.at[i], nodes)], shares_of.at[min(link.at[i + 1], nodes)],
             shares_of.at[min(link.at[i + 2], nodes)], shares_of.at[min(link.at[i + 3], nodes)]));
  for (; i < count; ++i) sums.x += shares_of.at[min(link.at[i], nodes)];
  return total_of(sums);
}

float of_blocks(uvec2 range) {
  vec4 sums = vec4(0.0), excess = vec4(0.0);
  uint i = range.x;
  for (; i + 4 <= range.y; i += 4)
    add(sums, excess,
        vec4(blocks.data.at[i], blocks.data.at[i + 1], blocks.data.at[i + 2], blocks.data.at[i + 3]));
  for (; i < range.y; ++i) sums.x += blocks.data.at[i];
  return total_of(sums);
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
    const float for_all = partials.data.at[2 * ((nodes + 255) / 256)];
    float share_of_all = for_all / float(nodes);
    if (has_preferences(shares, nodes)) share_of_all = for_all * Floats(part_address(shares, 4, nodes)).at[node];
    const float change = damping * (sum + share_of_all);
    const float part = Floats(part_address(shares, 2, nodes)).at[node];
    Floats low = Floats(part_address(shares, 3, nodes));
    const float before = ranks.data.at[node];
    precise const float corrected = change + low.at[node];
    precise const float rank = before + corrected;
    precise const float rest = corrected - (rank - before);
    ranks.data.at[node] = rank;
    low.at[node] = rest;
    Floats(part_address(shares, 1 - turn, nodes)).at[node] = change * part;
    partial = vec2(abs(change), part == 0.0 ? change : 0.0);
  }
  const vec2 sums = team_result(partial, 8);
  if (gl_LocalInvocationID.x == 0 && node < nodes) {
    partials.data.at[2 * flat_unit(8)] = sums.x;
    partials.data.at[2 * flat_unit(8) + 1] = sums.y;
  }
}
