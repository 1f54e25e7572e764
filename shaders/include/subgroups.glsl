// The invocations of a workgroup by their places in subgroups. Texts are right for subgroups of any size, and if the driver
// does not fill them: then each invocation is a subgroup alone. Tests define other sizes.
#ifndef SUBGROUP_SIZE
#define SUBGROUP_SIZE gl_SubgroupSize
#endif

bool has_full_subgroups() { return gl_NumSubgroups * gl_SubgroupSize == gl_WorkGroupSize.x; }

// Returns the number of adjacent invocations that exchange values without shared memory: a power of two.
uint subgroup_size() { return has_full_subgroups() ? SUBGROUP_SIZE : 1u; }

// Returns the index of this invocation in its workgroup. Drivers choose which invocations are a subgroup, therefore
// gl_LocalInvocationID may have another order.
uint invocation_index() {
  return has_full_subgroups() ? gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID : gl_LocalInvocationID.x;
}

// Returns the value of the invocation whose index differs by the bit `reach`, which is less than the size of subgroups. All
// invocations of the subgroup call it.
uint exchanged(uint value, uint reach) { return subgroupShuffleXor(value, reach); }
float exchanged(float value, uint reach) { return subgroupShuffleXor(value, reach); }
uvec2 exchanged(uvec2 value, uint reach) { return subgroupShuffleXor(value, reach); }
vec2 exchanged(vec2 value, uint reach) { return subgroupShuffleXor(value, reach); }
vec3 exchanged(vec3 value, uint reach) { return subgroupShuffleXor(value, reach); }
