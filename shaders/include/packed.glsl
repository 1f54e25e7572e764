// Elements of 8 and 16 bits in words of 32 bits, which requires no device feature. A word has 2^PACKED_LOG2
// elements.

// Consecutive elements, which may begin inside a word.
struct PackedLine {
  ConstWords words;
  uint skip;  // elements of the first word before the run
};

// Returns the run from element `index` of the memory at `address`.
PackedLine packed_line(uvec2 address, uvec2 index) {
  const uint log2 = 2 - PACKED_LOG2;
  const uvec2 from = plus(address, uvec2(index.x << log2, index.y << log2 | (log2 == 0 ? 0 : index.x >> (32 - log2) % 32)));
  return PackedLine(ConstWords(uvec2(from.x & ~3u, from.y)), (from.x & 3u) >> log2);
}

// Returns the word with element i, shifted so that the element has the lowest bits. Higher bits are not
// cleared.
uint packed_at(PackedLine line, uint i) {
  const uint at = i + line.skip, mask = (1u << PACKED_LOG2) - 1;
  return line.words.at[at >> PACKED_LOG2] >> ((at & mask) << (5 - PACKED_LOG2));
}
