// Declarations that the kernels of collatz share. Numbers of 128 bits are four words, the lowest first. A result has six words:
// the peak, the steps and the end. `memory.glsl` has the spans.
#include "memory.glsl"

const uint words_of_result = 6;
const uint end_one = 0, end_step_limit = 1, end_overflow = 2;

bool is_greater(uvec4 a, uvec4 b) {
  if (a.w != b.w) return a.w > b.w;
  if (a.z != b.z) return a.z > b.z;
  return a.y != b.y ? a.y > b.y : a.x > b.x;
}
