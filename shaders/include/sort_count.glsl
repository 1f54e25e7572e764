// Counts the elements of each tile by one digit of 8 bits of their keys.
#include "sort.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan keys;
  NumberSpan counts;  // of each row, 256 x tiles
  SortShape shape;
};
shared uint of_tile[256];

void main() {
  const Tile t = tile_of(shape);
  const uint me = gl_LocalInvocationID.x;
  of_tile[me] = 0;
  barrier();
  for (uint p = me; p < t.size; p += 256) {
    const KEY key = key_of(element_bits(uvec2(keys.data), plus(t.first, uvec2(p, 0))), shape);
    atomicAdd(of_tile[digit_of(key, shape.shift, 255)], 1);
  }
  barrier();
  if (t.size == 0) return;
  const uvec2 line = plus(product(t.row, 256), uvec2(me, 0));
  write_word(uvec2(counts.data), plus(times(line, shape.tiles), uvec2(t.column / tile_size, 0)), of_tile[me]);
}
