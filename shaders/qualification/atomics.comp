#version 460
// Atomics on words of a buffer: five combinations of all words, then a different number for each invocation.
#include "check.glsl"

shared uint sum;

void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (gl_LocalInvocationID.x == 0) sum = 0;
  barrier();
  if (i < n) {
    atomicAdd(sum, x[i]);
    atomicMax(y[1], x[i]);
    atomicXor(y[2], x[i]);
    for (uint seen = 0, next = 1; next != seen;) {  // it is 0 before the first one
      next = seen;
      seen = atomicCompSwap(y[3], next, next + x[i]);
    }
    y[8 + i] = atomicAdd(y[0], 1);
  }
  barrier();
  if (gl_LocalInvocationID.x == 0) atomicAdd(y[4], sum);
}
