#version 460
// 32-bit integers: eight results of each word and its successor.
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const uint a = x[i], b = x[(i + 1) % n], shift = b & 31;
  uint high, low;
  umulExtended(a, b, high, low);
  y[8 * i + 0] = a * b;
  y[8 * i + 1] = a / max(b, 1);
  y[8 * i + 2] = a % max(b, 1);
  y[8 * i + 3] = uint(int(a) / max(int(b >> 1), 1));
  y[8 * i + 4] = (a << shift) ^ (b >> (a & 31));
  y[8 * i + 5] = uint(int(a) >> shift);
  y[8 * i + 6] = bitCount(a) + 64 * uint(findMSB(a) + 1);
  y[8 * i + 7] = high;
}
