#version 460
// Two parameters of 8 bits.
#extension GL_EXT_shader_8bit_storage : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint y[]; };
layout(push_constant, std430) uniform Arguments {
  uint n;
  uint8_t factor;
  uint8_t added;
};

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = x[i] * uint(factor) + uint(added);
}
