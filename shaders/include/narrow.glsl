// to = from, rounded to 16 bits: to half, or with BFLOAT16 to that. A workgroup covers 512 neighbouring elements, an invocation
// the two of a word. The bits are those of include/wye/base/half.hpp: how packHalf2x16 rounds is left open.
#include "span.glsl"
#include "flat.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstBits { uint at[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint bits; };

struct BitsSpan {
  ConstFloats data;
  uvec2 size;
};
struct WordSpan {
  Word data;
  uvec2 size;
};
layout(push_constant) uniform Arguments {
  BitsSpan from;
  WordSpan to;
};

// bits / 2^by, to the nearest, of two equally near to the even one.
uint round_off(uint bits, uint by) { return (bits + (1u << (by - 1)) - 1 + (bits >> by & 1)) >> by; }

uint narrow(uint bits) {
  const uint size = bits & 0x7fffffffu;
#ifdef BFLOAT16
  return size > 0x7f800000u ? bits >> 16 | 0x40u : round_off(bits, 16);
#else
  uint half_size = 0;
  if (size > 0x7f800000u)
    half_size = 0x7e00u | size >> 13 & 0x3ffu;
  else if (size >= 0x477ff000u)
    half_size = 0x7c00u;
  else if (size >= 0x38800000u)
    half_size = round_off(size - 0x38000000u, 13);
  else if (size >= 0x33000000u)
    half_size = round_off(size & 0x7fffffu | 0x800000u, 126 - (size >> 23));
  return bits >> 16 & 0x8000u | half_size;
#endif
}

uint narrowed(uvec2 index) { return narrow(ConstBits(element(uvec2(from.data), index)).at[0]); }

void main() {
  // What lies in a word beside these elements is somebody else's.
  const uint skip = (uvec2(to.data).x & 2u) >> 1;
  const uvec2 item = flat_item(gl_WorkGroupID.x * 512 + gl_LocalInvocationID.x * 2);
  const bool starts = item == uvec2(0) && skip != 0;
  const uvec2 low = starts ? uvec2(0) : plus(item, uvec2(-int(skip), -int(skip)));
  const uvec2 high = plus(item, uvec2(1 - skip, 0));
  const bool has_low = !starts && is_less(low, from.size), has_high = is_less(high, from.size);
  Word word = Word(plus(uvec2(uvec2(to.data).x & ~3u, uvec2(to.data).y), uvec2(item.x << 1, item.y << 1 | item.x >> 31)));
  const uint low_bits = has_low ? narrowed(low) : 0, high_bits = has_high ? narrowed(high) : 0;
  if (has_low && has_high) {
    word.bits = low_bits | high_bits << 16;
  } else if (has_low) {
    atomicAnd(word.bits, 0xffff0000u);
    atomicOr(word.bits, low_bits);
  } else if (has_high) {
    atomicAnd(word.bits, 0xffffu);
    atomicOr(word.bits, high_bits << 16);
  }
}
