#version 460
// 64-bit integers: three results, low word first.
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#include "check.glsl"

void put(uint at, uint64_t value) {
  y[at] = uint(value);
  y[at + 1] = uint(value >> 32);
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint64_t a = uint64_t(x[i]) << 32 | x[(i + 1) % n], b = uint64_t(x[(i + 2) % n]) | 1ul;
  put(6 * i + 0, a * b + (a >> (x[i] & 63)));
  put(6 * i + 2, a / b);
  put(6 * i + 4, uint64_t(int64_t(a) / int64_t(b)));
}
