// Elements of 8 and 16 bits, several to a word of 32: that needs no feature of a device. PACKED_LOG2 is 2^ of how many.
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstWords { uint at[]; };

// A run of them, which may begin within a word.
struct PackedLine {
  ConstWords words;
  uint skip;  // elements of the first word that lie before it
};

// From element `index` of the memory that begins at `address` on.
PackedLine packed_line(uvec2 address, uvec2 index) {
  const uint log2 = 2 - PACKED_LOG2;
  const uvec2 from = plus(address, uvec2(index.x << log2, index.y << log2 | (log2 == 0 ? 0 : index.x >> (32 - log2) % 32)));
  return PackedLine(ConstWords(uvec2(from.x & ~3u, from.y)), (from.x & 3u) >> log2);
}

// The word that has element i, with that shifted to its lower end; what is above it stays.
uint packed_at(PackedLine line, uint i) {
  const uint at = i + line.skip, mask = (1u << PACKED_LOG2) - 1;
  return line.words.at[at >> PACKED_LOG2] >> ((at & mask) << (5 - PACKED_LOG2));
}
