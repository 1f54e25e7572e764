#version 460
// float16: sums and products of numbers in [0.5, 2).
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "check.glsl"

float16_t number(uint word) { return float16_t(unpackHalf2x16(0x3800 | (word & 0x07ff)).x); }

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const float16_t p = number(x[i]), q = number(x[i] >> 16);
  y[2 * i + 0] = floatBitsToUint(float(p + q));
  y[2 * i + 1] = floatBitsToUint(float(p * q));
}
