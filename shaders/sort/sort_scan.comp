#version 460
// Replaces the counts of each digit in the tiles of a row by the sums of the counts before. Writes the total of each digit
// after all counts. One invocation for each digit if there are few tiles, otherwise one workgroup.
#define WORD
#include "sort.glsl"
#include "prefix.glsl"

layout(push_constant) uniform Arguments {
  NumberSpan counts;
  SortShape shape;
};

uint count_at(uvec2 index) { return element_bits(uvec2(counts.data), index).x; }

void main() {
  const bool is_alone = shape.tiles <= few_tiles;
  const uint number = flat_unit(is_alone ? 0 : 8), me = gl_LocalInvocationID.x;
  const uvec2 line = uvec2(number, 0), digits = product(shape.rows, 256);
  if (!is_less(line, digits)) return;  // as the whole workgroup
  const uvec2 first = product(number, shape.tiles);
  uint sum = 0;
  if (is_alone) {
    for (uint i = 0; i < shape.tiles; ++i) {
      const uvec2 index = plus(first, uvec2(i, 0));
      const uint count = count_at(index);
      write_word(uvec2(counts.data), index, sum);
      sum += count;
    }
  } else {
    for (uint i = 0; i < shape.tiles; i += 256) {
      const uvec2 index = plus(first, uvec2(i + me, 0));
      const uint mine = i + me < shape.tiles ? count_at(index) : 0;
      uint total;
      const uint before = prefix_of(mine, total);
      if (i + me < shape.tiles) write_word(uvec2(counts.data), index, sum + before);
      sum += total;
    }
  }
  if (is_alone || me == 0) write_word(uvec2(counts.data), plus(times(digits, shape.tiles), line), sum);
}
