// Copies rows of k and v to their own rows of a cache, bit for bit. A workgroup has a row.
#include "span.glsl"
#include "flat.glsl"
#include "lines.glsl"

struct CacheRows {
  uint rows;
  uint key_columns;
  uint value_columns;
};

layout(push_constant) uniform Arguments {
  ConstNumberSpan k;
  ConstNumberSpan v;
  NumberSpan key_cache;
  NumberSpan value_cache;
  ConstWordSpan places;  // three words for each row: the last is its own row, if there is one
  CacheRows shape;
};

void copy_row(uvec2 source, uint row, uvec2 target, uint own, uint columns) {
  PackedLine from = line_of(source, product(row, columns));
  PackedLine to = line_of(target, product(own, columns));
  const uint words = words_of(to, columns);
  for (uint i = gl_LocalInvocationID.x; i < words; i += 256u) {
    uvec2 bits = uvec2(0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint column = element_of_word(to, i, j);
      if (column < columns) bits[j] = bits_at(from, column).x;
    }
    write_word_of(to, i, columns, bits);
  }
}

void main() {
  const uint row = flat_unit(8u);
  if (row >= shape.rows) return;
  const uint own = places.data.at[3u * row + 2u];
  if (own == 0xffffffffu) return;
  copy_row(uvec2(k.data), row, uvec2(key_cache.data), own, shape.key_columns);
  copy_row(uvec2(v.data), row, uvec2(value_cache.data), own, shape.value_columns);
}
