#version 460
// 8-bit integers.
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint8_t a = uint8_t(x[i]), b = uint8_t(x[i] >> 8);
  const int8_t c = int8_t(x[i] >> 16), d = int8_t(x[i] >> 24);
  y[2 * i + 0] = uint(uint8_t(a * b + a)) | uint(uint8_t(a - b)) << 8;
  y[2 * i + 1] = uint(int(int8_t(c * d)) & 0xffff) | uint(int(int8_t(c >> int8_t(2))) & 0xffff) << 16;
}
