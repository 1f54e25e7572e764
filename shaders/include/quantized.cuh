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
