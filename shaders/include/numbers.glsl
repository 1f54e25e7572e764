// Elements of arrays as bits and as terms of sums: floats, or with HALF, BFLOAT16, WORD or UINT64 half, bfloat16, 32-bit
// integers or uint64. They are read from words and written to words, which requires no device feature.
#if defined(HALF) || defined(BFLOAT16)
#define PACKED_LOG2 1
#else
#define PACKED_LOG2 0
#endif
#include "packed.glsl"
#include "memory.glsl"
#include "words.glsl"

#ifdef UINT64
#define TERM uvec2
TERM sum_of(TERM a, TERM b) { return plus(a, b); }
TERM product_of(TERM a, TERM b) { return plus(times(a, b.x), uvec2(0, a.x * b.y)); }
uvec2 bits_of(TERM term) { return term; }
#elif defined(WORD)
#define TERM uint
TERM sum_of(TERM a, TERM b) { return a + b; }
TERM product_of(TERM a, TERM b) { return a * b; }
uvec2 bits_of(TERM term) { return uvec2(term, 0); }
#else
#define TERM float
TERM sum_of(TERM a, TERM b) { return a + b; }
TERM product_of(TERM a, TERM b) { return a * b; }
uvec2 bits_of(TERM term) { return uvec2(floatBitsToUint(term), 0); }
#endif

// Returns the numbers from `index` on.
PackedLine line_of(uvec2 address, uvec2 index) {
#ifdef UINT64
  index = plus(index, index);
#endif
  return packed_line(address, index);
}

// Returns the bits of an element {low, high}. Bits that the element does not have are zero.
uvec2 bits_at(PackedLine line, uint i) {
#if defined(UINT64)
  return uvec2(line.words.at[2 * i], line.words.at[2 * i + 1]);
#elif defined(HALF) || defined(BFLOAT16)
  return uvec2(packed_at(line, i) & 0xffffu, 0);
#else
  return uvec2(packed_at(line, i), 0);
#endif
}

TERM term_of(uvec2 bits) {
#if defined(UINT64)
  return bits;
#elif defined(WORD)
  return bits.x;
#elif defined(HALF)
  return unpackHalf2x16(bits.x).x;
#elif defined(BFLOAT16)
  return uintBitsToFloat(bits.x << 16);
#else
  return uintBitsToFloat(bits.x);
#endif
}

TERM term_at(PackedLine line, uint i) { return term_of(bits_at(line, i)); }

void write_word(uvec2 address, uvec2 index, uint bits) { Word(element(address, index)).bits = bits; }

// Writes element `index` of an array of terms, which are floats if the elements are.
void write_term(uvec2 address, uvec2 index, uvec2 bits) {
#ifdef UINT64
  write_word(address, plus(index, index), bits.x);
  write_word(address, plus(plus(index, index), uvec2(1, 0)), bits.y);
#else
  write_word(address, index, bits.x);
#endif
}

// Writes element `index` of an array of numbers.
void write_number(uvec2 address, uvec2 index, uvec2 bits) {
#if defined(HALF) || defined(BFLOAT16)
  write_bytes(half_element(address, index), 2, bits.x);
#else
  write_term(address, index, bits);
#endif
}
