#version 460
// float64: four results, low word first.
#include "check.glsl"

void put(uint at, double value) {
  const uvec2 words = unpackDouble2x32(value);
  y[at] = words.x;
  y[at + 1] = words.y;
}

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  const double p = packDouble2x32(uvec2(x[i], 0x3fe00000 | (x[(i + 1) % n] & 0x001fffff)));
  const double q = packDouble2x32(uvec2(x[(i + 2) % n], 0x3fe00000 | (x[i] & 0x001fffff)));
  put(8 * i + 0, p + q);
  put(8 * i + 2, p * q);
  put(8 * i + 4, p / q);
  put(8 * i + 6, sqrt(p));
}
