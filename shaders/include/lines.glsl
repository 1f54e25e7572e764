// Writes lines of elements. A word has one element, or two of 16 bits. Other lines may have one of the two.
#include "numbers.glsl"

const uint elements_per_word = 1u << PACKED_LOG2;

// Returns the number of words that have elements of a line of `size` elements.
uint words_of(PackedLine line, uint size) { return (size + line.skip + elements_per_word - 1) / elements_per_word; }

// Returns the element of a line that is number `j` of a word. Numbers beyond the line are other lines' elements.
uint element_of_word(PackedLine line, uint word, uint j) { return elements_per_word * word + j - line.skip; }

// Writes the elements of word `i` that belong to a line of `size` elements.
void write_word_of(PackedLine to, uint i, uint size, uvec2 bits) {
  Word word = Word(element(uvec2(to.words), uvec2(i, 0)));
#if PACKED_LOG2 == 1
  const bool has_low = element_of_word(to, i, 0u) < size, has_high = element_of_word(to, i, 1u) < size;
  set_bits(word, (has_low ? 0xffffu : 0u) | (has_high ? 0xffff0000u : 0u), (bits.x & 0xffffu) | bits.y << 16);
#else
  word.bits = bits.x;
#endif
}

#if defined(HALF) || defined(BFLOAT16)
uint bits_of_value(float value) { return narrow(floatBitsToUint(value)) & 0xffffu; }
#else
uint bits_of_value(float value) { return floatBitsToUint(value); }
#endif

// The same for numbers, which are rounded.
void write_values_of(PackedLine to, uint i, uint size, vec2 values) {
  write_word_of(to, i, size, uvec2(bits_of_value(values.x), bits_of_value(values.y)));
}

// Writes the first `count` of two adjacent numbers, from element k on.
void write_two(PackedLine to, uint k, uint count, vec2 values) {
  const uint low = bits_of_value(values.x), high = bits_of_value(values.y), at = k + to.skip;
  Word word = Word(element(uvec2(to.words), uvec2(at / elements_per_word, 0)));
  Word next = Word(element(uvec2(to.words), uvec2(at / elements_per_word + 1, 0)));
#if PACKED_LOG2 == 1
  if ((at & 1u) == 0u) {
    set_bits(word, (count > 0 ? 0xffffu : 0u) | (count > 1 ? 0xffff0000u : 0u), low | high << 16);
  } else {
    set_bits(word, count > 0 ? 0xffff0000u : 0u, low << 16);
    set_bits(next, count > 1 ? 0xffffu : 0u, high);
  }
#else
  if (count > 0) word.bits = low;
  if (count > 1) next.bits = high;
#endif
}
