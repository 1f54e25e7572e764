#version 460
// A struct of 20 bytes in which a vector begins at 4 and ends at 16.
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 64) in;
struct Five {
  uint first;
  uvec3 middle;
  uint last;
};
layout(set = 0, binding = 0, scalar) readonly buffer X { Five x[]; };
layout(set = 0, binding = 1, scalar) buffer Y { uint y[]; };
layout(push_constant) uniform Count { uint n; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = x[i].first + 3 * x[i].middle.x + 5 * x[i].middle.y + 7 * x[i].middle.z + 11 * x[i].last;
}
