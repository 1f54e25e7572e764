// Adjacent invocations that need the same values. SHARING is their number, a power of two. Lanes are those of them that are in the
// same subgroup: each reads other values, and they exchange them. Without SUBGROUPS, each reads all values.
#ifdef SUBGROUPS
uint lanes() { return min(subgroup_size(), SHARING); }
uint lane() { return gl_SubgroupInvocationID & (lanes() - 1); }
uint of_lane(uint value, uint other) { return subgroupShuffle(value, gl_SubgroupInvocationID - lane() + other); }
float of_lane(float value, uint other) { return subgroupShuffle(value, gl_SubgroupInvocationID - lane() + other); }
#else
uint lanes() { return 1; }
uint lane() { return 0; }
uint of_lane(uint value, uint other) { return value; }
float of_lane(float value, uint other) { return value; }
#endif
vec2 of_lane(vec2 value, uint other) { return vec2(of_lane(value.x, other), of_lane(value.y, other)); }
vec3 of_lane(vec3 value, uint other) { return vec3(of_lane(value.xy, other), of_lane(value.z, other)); }
