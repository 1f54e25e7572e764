// y = the transpose of each x. An element has 2^ELEMENT_LOG2 bytes. A workgroup transposes a tile of 32 x 32 in
// shared memory: adjacent invocations then read and write adjacent elements.
#include "span.glsl"
#include "flat.glsl"
#include "bytes.glsl"
#include "memory.glsl"
#define PACKED_LOG2 (2 - ELEMENT_LOG2)
#include "packed.glsl"

struct Transposition {
  uint rows;  // of x
  uint columns;
  uint batch;  // matrices
};

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  NumberSpan y;
  Transposition shape;
};

const uint side = 32, block_tiles = 8;
shared uint tile[side][side + 1];

void main() {
  const uint rows = shape.rows, columns = shape.columns;
  // Tiles are numbered in blocks of 8 x 8: the host then needs few pages at a time.
  const uint number = flat_unit(8), block = number >> 6, block_side = block_tiles * side;
  const uint across = (columns + block_side - 1) / block_side, blocks = across * ((rows + block_side - 1) / block_side);
  if (blocks == 0) return;
  const uint n = block / blocks, at = block % blocks;
  const uint row = (at / across * block_tiles + (number >> 3 & 7)) * side;
  const uint column = (at % across * block_tiles + (number & 7)) * side;
  if (n >= shape.batch || row >= rows || column >= columns) return;  // all invocations of the workgroup
  const uvec2 matrix = times(product(rows, columns), n);

  const uint line = gl_LocalInvocationID.x / side, place = gl_LocalInvocationID.x % side;
  for (uint i = line; i < side; i += 256 / side)
    if (row + i < rows && column + place < columns)
      tile[i][place] =
          packed_at(packed_line(uvec2(x.data), plus(matrix, product(row + i, columns))), column + place);
  barrier();

  // An invocation writes a word of elements.
  const uint elements = 4 >> ELEMENT_LOG2, runs = side / elements, bits = 8 << ELEMENT_LOG2;
  const uint first = gl_LocalInvocationID.x % runs * elements;
  for (uint i = gl_LocalInvocationID.x / runs; i < side; i += 256 / runs) {
    if (column + i >= columns || row + first >= rows) continue;
    const uint count = min(elements, rows - row - first);
    uint word = 0;
    for (uint k = 0; k < count; ++k) word |= (tile[first + k][i] & (0xffffffffu >> (32 - bits))) << (k * bits);
    const uvec2 to = plus(plus(matrix, product(column + i, rows)), uvec2(row + first, 0));
    const uvec2 offset = uvec2(to.x << ELEMENT_LOG2, to.y << ELEMENT_LOG2 | to.x >> 1 >> (31 - ELEMENT_LOG2));
    write_bytes(plus(uvec2(y.data), offset), count << ELEMENT_LOG2, word);
  }
}
