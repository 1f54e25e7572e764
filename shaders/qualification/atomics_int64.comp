#version 460
// 64-bit atomics: three combinations of all numbers.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_atomic_int64 : require
layout(local_size_x = 64) in;
layout(set = 0, binding = 0, std430) readonly buffer X { uint x[]; };
layout(set = 0, binding = 1, std430) buffer Y { uint64_t y[]; };
layout(push_constant) uniform Count { uint n; };

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint64_t value = uint64_t(x[i]) << 32 | x[(i + 1) % n];
  atomicAdd(y[0], value);
  atomicMax(y[1], value);
  atomicXor(y[2], value);
}
