// Writes elements narrower than a word to any address. Other invocations may write the other bytes of a word at
// the same time.
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint bits; };

// Returns the address of the 2-byte element `index` of the memory at `address`.
uvec2 half_element(uvec2 address, uvec2 index) {
  return plus(address, uvec2(index.x << 1, index.y << 1 | index.x >> 31));
}

// Sets the bits of a word that `mask` has.
void set_bits(Word word, uint mask, uint bits) {
  if (mask == 0xffffffffu) {
    word.bits = bits;
  } else if (mask != 0) {
    atomicAnd(word.bits, ~mask);
    atomicOr(word.bits, bits & mask);
  }
}

// Writes the `count` lowest bytes of `bits`, from 1 to 4.
void write_bytes(uvec2 address, uint count, uint bits) {
  const uint shift = (address.x & 3u) << 3, mask = 0xffffffffu >> (32 - 8 * count);
  const uvec2 first = uvec2(address.x & ~3u, address.y);
  set_bits(Word(first), mask << shift, bits << shift);
  if (shift + 8 * count > 32) set_bits(Word(plus(first, uvec2(4, 0))), mask >> (32 - shift), bits >> (32 - shift));
}
