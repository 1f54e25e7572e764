#version 460
// Follows the trajectory of one number per invocation. An iteration takes the halvings up to the next odd value, at most 31, and
// the step from it: at least two steps after the first one. Thus 100,000 steps take fewer than 60,000 iterations.
#include "span.glsl"
#include "flat.glsl"
#include "collatz.glsl"

struct Start {
  uint first_0, first_1, first_2, first_3;  // the words of the first number
  uint step_limit;
};
layout(push_constant) uniform Arguments {
  NumberSpan results;
  Start start;
};

// Returns `word` times 3, plus `carry`.
uvec2 tripled_word(uint word, uint carry) {
  const uvec2 triple = product(word, 3u);
  return plus(triple, uvec2(carry, 0));
}

// Returns whether 3n + 1 has 128 bits, and sets `next` to it.
bool triple_plus_one(uvec4 n, out uvec4 next) {
  const uvec2 a = tripled_word(n.x, 1u), b = tripled_word(n.y, a.y);
  if ((n.z | n.w | b.y) == 0) {
    next = uvec4(a.x, b.x, 0, 0);
    return true;
  }
  const uvec2 c = tripled_word(n.z, b.y), d = tripled_word(n.w, c.y);
  next = uvec4(a.x, b.x, c.x, d.x);
  return d.y == 0;
}

// Returns n / 2^by for `by` from 0 to 31.
uvec4 halved(uvec4 n, uint by) {
  const uvec3 from_above = (n.yzw << (31u - by)) << 1u;
  return uvec4((n.xyz >> by) | from_above, n.w >> by);
}

void main() {
  const uvec2 item = flat_item(gl_GlobalInvocationID.x);
  if (!is_less(item, results.size)) return;
  const uvec2 low = plus(uvec2(start.first_0, start.first_1), item);
  const uint carry = is_less(low, item) ? 1 : 0;
  const uvec2 high = plus(uvec2(start.first_2, start.first_3), uvec2(carry, 0));
  uvec4 n = uvec4(low, high), peak = n;
  uint steps = 0, reason = end_one;
  if (is_greater(n, uvec4(1, 0, 0, 0)))
    for (uint i = 0; i < 60000; ++i) {
      const uint halvings = min(uint(findLSB(n.x)), 31u);  // 31 if the word is 0
      if (halvings > start.step_limit - steps) {
        steps = start.step_limit;
        reason = end_step_limit;
        break;
      }
      n = halved(n, halvings);
      steps += halvings;
      if ((n.x & 1u) == 0) continue;
      if (n == uvec4(1, 0, 0, 0)) break;
      if (steps == start.step_limit) {
        reason = end_step_limit;
        break;
      }
      uvec4 next;
      if (!triple_plus_one(n, next)) {
        reason = end_overflow;
        break;
      }
      n = next;
      ++steps;
      if (is_greater(n, peak)) peak = n;
    }
  Words to = Words(element(uvec2(results.data), times(item, words_of_result)));
  to.at[0] = peak.x;
  to.at[1] = peak.y;
  to.at[2] = peak.z;
  to.at[3] = peak.w;
  to.at[4] = steps;
  to.at[5] = reason;
}
