#version 460
// Operations of a subgroup: four words that describe its invocation, and four results.
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  const uint word = x[i % n];
  const uint sum = subgroupAdd(word), before = subgroupExclusiveAdd(word);
  const uvec4 odd = subgroupBallot((word & 1) != 0);
  const uint other = subgroupShuffle(word, (gl_SubgroupInvocationID + 3) % gl_SubgroupSize);
  const bool any = subgroupAny((word & 7) == 0);
  if (i >= n) return;
  y[8 * i + 0] = gl_SubgroupSize;
  y[8 * i + 1] = gl_SubgroupInvocationID;
  y[8 * i + 2] = gl_WorkGroupID.x * 256 + gl_SubgroupID;
  y[8 * i + 3] = sum;
  y[8 * i + 4] = before;
  y[8 * i + 5] = subgroupBallotBitCount(odd);
  y[8 * i + 6] = other;
  y[8 * i + 7] = any ? 1 : 0;
}
