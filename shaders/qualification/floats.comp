#version 460
// float32: eight results of each pair of adjacent numbers in [0.5, 2).
#include "check.glsl"

float number(uint word) { return uintBitsToFloat(0x3f000000 | (word & 0x00ffffff)); }

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const float p = number(x[i]), q = number(x[(i + 1) % n]);
  y[8 * i + 0] = floatBitsToUint(p + q);
  y[8 * i + 1] = floatBitsToUint(p - q);
  y[8 * i + 2] = floatBitsToUint(p * q);
  y[8 * i + 3] = floatBitsToUint(p / q);
  y[8 * i + 4] = floatBitsToUint(sqrt(p));
  y[8 * i + 5] = floatBitsToUint(exp2(p));
  y[8 * i + 6] = floatBitsToUint(log2(p));
  y[8 * i + 7] = uint(floor(p * 1024.0)) + (p < q ? 65536 : 0);
}
