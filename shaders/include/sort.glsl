// Tiles of rows of 16-bit elements with HALF, of words with WORD, or of uint64 with UINT64, and the order of the elements.
#include "span.glsl"
#include "flat.glsl"
#include "numbers.glsl"

#ifdef UINT64
#define KEY uvec2
#else
#define KEY uint
#endif

// The distribution of rows over tiles, computed by `src/workloads/sorting.hpp`.
struct SortShape {
  uint rows;
  uint columns;
  uint tiles;          // of one row
  uint rows_per_tile;  // above 1 only if rows have one tile
  uint keep;           // the first elements of each sorted row that are written
  uint infinity;       // its bits, as in the upper half of a word; 0: keys are integers
  uint flip;           // inverts keys, or the signs of integers
  uint bits;           // of a key
  uint shift;          // of the digit of 8 bits that distributes the elements of longer rows
};

const uint tile_size = 2048, per_lane = tile_size / gl_WorkGroupSize.x;
const uint few_tiles = 64;  // one invocation adds up the counts of so many

struct Tile {
  uint number;
  uint row;     // its first row
  uint column;  // its first element of that row
  uint size;    // its elements; 0 if it does not exist
  uvec2 first;  // element of the matrix
};

Tile tile_of(SortShape shape) {
  Tile t;
  t.number = flat_unit(8);
  const uint group = t.number / shape.tiles;
  t.row = group * shape.rows_per_tile;
  t.column = (t.number - group * shape.tiles) * tile_size;
  t.size = shape.tiles > 1 ? min(tile_size, shape.columns - t.column)
                           : min(shape.rows_per_tile, shape.rows - t.row) * shape.columns;
  if (t.row >= shape.rows) t.row = t.size = 0;
  t.first = plus(product(t.row, shape.columns), uvec2(t.column, 0));
  return t;
}

// Returns a number that has the order of the elements. All NaN have the largest number, and both zeros the same one.
KEY key_of(uvec2 bits, SortShape shape) {
#ifdef UINT64
  return bits ^ shape.flip;
#else
#ifdef HALF
  const uint all = bits.x << 16;
#else
  const uint all = bits.x;
#endif
  uint key = all;
  if (shape.infinity != 0) {
    const uint size = all & 0x7fffffffu, zero = 0x80000000u;
    key = size > shape.infinity ? 0xffffffffu : all > size ? zero - size : zero + size;
  }
  key ^= shape.flip;
#ifdef HALF
  key >>= 16;
#endif
  return key;
#endif
}

// Returns the digit whose lowest bit is bit `shift` of the key. No digit has bits of two words.
uint digit_of(KEY key, uint shift, uint mask) {
#ifdef UINT64
  return (shift < 32 ? key.x >> shift : key.y >> (shift - 32)) & mask;
#else
  return key >> shift & mask;
#endif
}

uvec2 element_bits(uvec2 address, uvec2 index) { return bits_at(line_of(address, index), 0); }
