#version 460
// float32 atomics: the sum of small whole numbers, which is exact in any order.
#extension GL_EXT_shader_atomic_float : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { float y[]; };
layout(push_constant) uniform Count { uint n; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < n) atomicAdd(y[0], float(x[i] & 1023));
}
