// Writes 16-bit elements, two per word: half, or bfloat16 with BFLOAT16. The bits are those of
// include/wye/base/half.hpp, because the rounding of packHalf2x16 is not specified.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint bits; };
struct WordSpan {
  Word data;
  uvec2 size;
};

// Returns bits / 2^by, rounded to nearest, ties to even.
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

// Sets 16 bits of a word, from bit `first` on. Another invocation may set the other bits at the same time.
void set_half_of(Word word, uint first, uint bits) {
  atomicAnd(word.bits, ~(0xffffu << first));
  atomicOr(word.bits, bits << first);
}
