#version 460
// Buffers of 16-bit elements.
#extension GL_EXT_shader_16bit_storage : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint16_t x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint16_t y[]; };
layout(push_constant) uniform Count { uint n; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = uint16_t(uint(x[n - 1 - i]) * 5 + i);
}
