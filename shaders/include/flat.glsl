// The flat grid has rows of 2^23 items. Any number of items fits into 65,535 workgroups per dimension.
layout(local_size_x = 256) in;

#ifdef SUBGROUPS
#include "subgroups.glsl"
#else
uint invocation_index() { return gl_LocalInvocationID.x; }
#endif

const uint flat_width_log2 = 23;

// Returns the index {low, high} of the item at column `x` of this workgroup's row.
uvec2 flat_item(uint x) {
  return plus(uvec2(gl_WorkGroupID.y << flat_width_log2, gl_WorkGroupID.y >> (32 - flat_width_log2)), uvec2(x, 0));
}

// Returns the index of this invocation's item divided by 2^log2.
uint flat_unit(uint log2) {
  return (gl_WorkGroupID.y << (flat_width_log2 - log2)) + ((gl_WorkGroupID.x * gl_WorkGroupSize.x + invocation_index()) >> log2);
}
