#version 460
// A simulation of threads that fork, in three steps: resets the depths, follows the chains, and finds the deepest. An invocation
// follows one chain, and loops over the depths, at most 60,000.
#include "span.glsl"
#include "flat.glsl"
#include "memory.glsl"

struct Shape {
  uint limit_low, limit_high;
  uint max_depth;
  uint batch;  // chains of one workgroup, at most 256
  uint part;
};
layout(push_constant) uniform Arguments {
  NumberSpan last;     // four words each: the value, the depth and the end
  NumberSpan depths;   // two words each: the number of chains and the first of them
  NumberSpan summary;  // four words: the forks, the deepest and its chain
  Shape shape;
};

const uint reset_depths = 0, follow_chains = 1;
const uint end_one = 0, end_limit = 1, end_max_depth = 2;
const uint no_chain = 0xffffffffu;

Words words_of(NumberSpan memory, uint index, uint words) {
  return Words(element(uvec2(memory.data), product(index, words)));
}

// Returns the value after one Collatz step.
uvec2 successor(uvec2 value) {
  if ((value.x & 1u) == 0) return uvec2(value.x >> 1 | value.y << 31, value.y >> 1);
  return plus(times(value, 3u), uvec2(1, 0));
}

void follow(uint chain) {
  const uvec2 limit = uvec2(shape.limit_low, shape.limit_high);
  uvec2 value = uvec2(chain, 0);
  uint depth = 0, reason = end_max_depth;
  for (; depth <= shape.max_depth; ++depth) {
    if (value.y == 0 && value.x <= 1) {
      reason = end_one;
      break;
    }
    if (is_less(limit, value)) {
      reason = end_limit;
      break;
    }
    if (depth == shape.max_depth) break;
    value = successor(value);
  }
  Words to = words_of(last, chain, 4u);
  to.at[0] = value.x;
  to.at[1] = value.y;
  to.at[2] = depth;
  to.at[3] = reason;
  Words count = words_of(depths, depth, 2u);
  atomicAdd(count.at[0], 1u);
  atomicMin(count.at[1], chain);
}

void find_deepest() {
  uvec2 forks = uvec2(0);
  uint deepest = 0, chain = 0;
  for (uint depth = 0; depth <= shape.max_depth; ++depth) {
    Words count = words_of(depths, depth, 2u);
    if (count.at[0] == 0) continue;
    forks = plus(forks, product(count.at[0], depth));
    deepest = depth;
    chain = count.at[1];
  }
  Words to = words_of(summary, 0u, 4u);
  to.at[0] = forks.x;
  to.at[1] = forks.y;
  to.at[2] = deepest;
  to.at[3] = chain;
}

void main() {
  const uint me = gl_LocalInvocationID.x, item = flat_unit(0u);
  if (shape.part == reset_depths) {
    if (item > shape.max_depth) return;
    Words count = words_of(depths, item, 2u);
    count.at[0] = 0;
    count.at[1] = no_chain;
  } else if (shape.part == follow_chains) {
    const uvec2 chain = plus(product(flat_unit(8u), shape.batch), uvec2(me, 0));
    if (me < shape.batch && is_less(chain, last.size)) follow(chain.x);
  } else if (item == 0) {
    find_deepest();
  }
}
