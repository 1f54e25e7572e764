#version 460
// 16-bit integers.
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint16_t a = uint16_t(x[i]), b = uint16_t(x[i] >> 16);
  const int16_t c = int16_t(x[i]), d = int16_t(x[i] >> 16);
  y[2 * i + 0] = uint(uint16_t(a * b + a)) | uint(uint16_t(a - b)) << 16;
  y[2 * i + 1] = uint(int(int16_t(c * d)) & 0xffff) | uint(int(int16_t(c >> int16_t(3))) & 0xffff) << 16;
}
