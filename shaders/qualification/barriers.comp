#version 460
// Shared memory and barriers: the sum of each workgroup's words, and eight rotations of weighted words.
#include "check.glsl"

shared uint part[64];

void main() {
  const uint i = gl_GlobalInvocationID.x, at = gl_LocalInvocationID.x;
  const uint word = i < n ? x[i] : 0;
  uint value = word;
  for (uint k = 0; k < 8; ++k) {
    part[at] = value;
    barrier();
    value = part[(at + 7) & 63] * 3 + k;
    barrier();
  }
  part[at] = word;
  for (uint count = 32; count != 0; count /= 2) {
    barrier();
    if (at < count) part[at] += part[at + count];
  }
  barrier();
  if (i < n) y[i] = value ^ part[0];
}
