#version 460
// Specialization constants of a pipeline, one of them in the size of an array.
#include "check.glsl"

layout(constant_id = 0) const uint factor = 1;
layout(constant_id = 1) const bool inverts = false;
layout(constant_id = 2) const uint length = 2;

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= n) return;
  uint steps[length];
  for (uint k = 0; k < length; ++k) steps[k] = x[(i + k) % n];
  uint value = 0;
  for (uint k = 0; k < length; ++k) value = value * factor + steps[length - 1 - k];
  y[i] = inverts ? ~value : value;
}
