#pragma once
// Blocks of quantized elements; include/wye/workloads/quantized.hpp has their layouts.
#include "elements.cuh"

struct BlockLayout {
  unsigned type;
  unsigned group_log2;
  unsigned bits;
  unsigned header;
};
enum { q4_0, q4_1, q8_0, int4_, int8_ };

typedef unsigned char Byte;

__device__ unsigned block_bytes(BlockLayout layout) { return layout.header + ((layout.bits << layout.group_log2) >> 3); }

__device__ unsigned short_at(const Byte* from) { return unsigned(from[0]) | unsigned(from[1]) << 8; }
__device__ void write_short(Byte* to, unsigned bits) {
  to[0] = Byte(bits);
  to[1] = Byte(bits >> 8);
}

// Returns four bytes. The address is even if `even`.
__device__ int four_bytes(const Byte* from, bool even) {
  if (even) {
    const unsigned short* const halves = reinterpret_cast<const unsigned short*>(from);
    return int(unsigned(halves[0]) | unsigned(halves[1]) << 16);
  }
  return int(short_at(from) | short_at(from + 2) << 16);
}

// A block is scale (q - zero) + minimum.
struct BlockHeader {
  float scale, zero, minimum;
};
__device__ BlockHeader header_of(const Byte* block, BlockLayout layout) {
  typedef HalfElement::Number Bits;
  BlockHeader header = {HalfElement::term(Bits(short_at(block))), 0.0f, 0.0f};
  if (layout.type == q4_0)
    header.zero = 8.0f;
  else if (layout.type == q4_1)
    header.minimum = HalfElement::term(Bits(short_at(block + 2)));
  else if (layout.type != q8_0)
    header.zero = float(short(short_at(block + 2)));
  return header;
}

// Returns integer i of a block.
__device__ int integer_at(const Byte* block, unsigned i, BlockLayout layout) {
  if (layout.bits == 8) return (signed char)block[layout.header + i];
  const unsigned middle = 1u << (layout.group_log2 - 1), both = block[layout.header + (i & (middle - 1))];
  return int(i < middle ? both & 15u : both >> 4);
}

// Returns element i of a block.
__device__ float value_at(const Byte* block, BlockHeader header, unsigned i, BlockLayout layout) {
  const float scaled = __fmul_rn(header.scale, float(integer_at(block, i, layout)) - header.zero);
  return layout.type == q4_1 ? __fadd_rn(scaled, header.minimum) : scaled;
}

// Returns integers i to i + 3 of a block, i a multiple of 4, in the bytes of a word.
__device__ int four_integers(const Byte* integers, bool even, unsigned i, BlockLayout layout) {
  if (layout.bits == 8) return four_bytes(integers + i, even);
  const unsigned middle = 1u << (layout.group_log2 - 1);
  const int both = four_bytes(integers + (i & (middle - 1)), even);
  return (i < middle ? both : both >> 4) & 0x0f0f0f0f;
}
