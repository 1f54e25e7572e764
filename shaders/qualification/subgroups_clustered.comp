#version 460
// Sums of clusters of four invocations.
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_clustered : require
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  const uint sum = subgroupClusteredAdd(x[i % n], 4);
  if (i >= n) return;
  y[4 * i + 0] = gl_SubgroupSize;
  y[4 * i + 1] = gl_SubgroupInvocationID;
  y[4 * i + 2] = gl_WorkGroupID.x * 256 + gl_SubgroupID;
  y[4 * i + 3] = sum;
}
