// Blocks of quantized elements; include/wye/workloads/quantized.hpp has their layouts. Bytes are read from words, which
// requires no device feature.
#define PACKED_LOG2 2
#include "span.glsl"
#include "flat.glsl"
#include "memory.glsl"
#include "packed.glsl"
#include "words.glsl"

struct BlockLayout {
  uint type;
  uint group_log2;
  uint bits;
  uint header;
};
const uint q4_0 = 0, q4_1 = 1, q8_0 = 2, int4 = 3, int8 = 4;

uint block_bytes(BlockLayout layout_) { return layout_.header + ((layout_.bits << layout_.group_log2) >> 3); }

uvec2 shifted_right(uvec2 v, uint by) { return uvec2(v.x >> by | v.y << (32 - by), v.y >> by); }
uvec2 shifted_left(uvec2 v, uint by) { return uvec2(v.x << by, v.y << by | v.x >> (32 - by)); }

// Returns the bytes of block `number` of the memory at `address`.
PackedLine block_at(uvec2 address, uvec2 number, BlockLayout layout_) {
  return packed_line(address, times(number, block_bytes(layout_)));
}

uint byte_at(PackedLine line, uint i) { return packed_at(line, i) & 0xffu; }
uint short_at(PackedLine line, uint i) { return byte_at(line, i) | byte_at(line, i + 1) << 8; }

// Converts a half exactly. unpackHalf2x16 may take small numbers for zeros.
float half_value(uint bits) {
  const uint size = bits & 0x7fffu, sign = (bits & 0x8000u) << 16;
  if (size >= 0x7c00u) return uintBitsToFloat(sign | 0x7f800000u | size << 13);
  if (size >= 0x400u) return uintBitsToFloat(sign | (0x38000000u + (size << 13)));
  const float small = float(size) * (1.0 / 16777216.0);
  return sign != 0 ? -small : small;
}

// A block is scale (q - zero) + minimum.
struct BlockHeader {
  float scale, zero, minimum;
};
BlockHeader header_of(PackedLine block, BlockLayout layout_) {
  BlockHeader header = BlockHeader(half_value(short_at(block, 0)), 0.0, 0.0);
  if (layout_.type == q4_0)
    header.zero = 8.0;
  else if (layout_.type == q4_1)
    header.minimum = half_value(short_at(block, 2));
  else if (layout_.type != q8_0)
    header.zero = float(bitfieldExtract(int(short_at(block, 2)), 0, 16));
  return header;
}

// Returns integer i of a block.
int integer_at(PackedLine block, uint i, BlockLayout layout_) {
  if (layout_.bits == 8) return bitfieldExtract(int(byte_at(block, layout_.header + i)), 0, 8);
  const uint middle = 1u << (layout_.group_log2 - 1);
  const uint both = byte_at(block, layout_.header + (i & (middle - 1)));
  return int(i < middle ? both & 15u : both >> 4);
}

// Returns element i of a block.
float value_at(PackedLine block, BlockHeader header, uint i, BlockLayout layout_) {
  precise float scaled = header.scale * (float(integer_at(block, i, layout_)) - header.zero);
  precise float value = scaled + header.minimum;
  return layout_.type == q4_1 ? value : scaled;
}
