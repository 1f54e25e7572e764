// to = from, rounded to half, or to bfloat16 with BFLOAT16. A workgroup covers 512 adjacent elements, an
// invocation the two elements of a word.
#include "span.glsl"
#include "flat.glsl"
#include "words.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstBits { uint at[]; };

struct BitsSpan {
  ConstFloats data;
  uvec2 size;
};
layout(push_constant) uniform Arguments {
  BitsSpan from;
  WordSpan to;
};

uint narrowed(uvec2 index) { return narrow(ConstBits(element(uvec2(from.data), index)).at[0]); }

void main() {
  // Other elements of the first and last word do not belong to `to`.
  const uint skip = (uvec2(to.data).x & 2u) >> 1;
  const uvec2 item = flat_item(gl_WorkGroupID.x * 512 + gl_LocalInvocationID.x * 2);
  const bool starts = item == uvec2(0) && skip != 0;
  const uvec2 low = starts ? uvec2(0) : plus(item, uvec2(-int(skip), -int(skip)));
  const uvec2 high = plus(item, uvec2(1 - skip, 0));
  const bool has_low = !starts && is_less(low, from.size), has_high = is_less(high, from.size);
  Word word = Word(half_element(uvec2(uvec2(to.data).x & ~3u, uvec2(to.data).y), item));
  const uint low_bits = has_low ? narrowed(low) : 0, high_bits = has_high ? narrowed(high) : 0;
  set_bits(word, (has_low ? 0xffffu : 0u) | (has_high ? 0xffff0000u : 0u), low_bits | high_bits << 16);
}
