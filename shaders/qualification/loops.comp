#version 460
// One loop of 4096 n iterations: their number, and a value that each changes. A driver may end it early.
#include "check.glsl"

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  uint value = x[i], count = 0;
  for (uint k = 0; k < 4096 * n; ++k) {
    value = value * 1664525 + 1013904223;
    ++count;
  }
  y[2 * i] = count;
  y[2 * i + 1] = value;
}
