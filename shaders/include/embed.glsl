// The rows of a table that tokens name, bit for bit. Rows of other tokens are zeros.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "lines.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan table;
  ConstWordSpan tokens;
  NumberSpan result;
  RowSplit split;   // of the result
  uint vocabulary;  // rows of the table
};

void main() {
  const Piece p = piece_of(split);
  const uint size = p.last - p.first;
  if (size == 0) return;
  const uint token = tokens.data.at[p.row];
  const bool known = token < vocabulary;
  PackedLine from = line_of(uvec2(table.data), plus(product(known ? token : 0u, split.columns), uvec2(p.first, 0)));
  PackedLine to = line_of(uvec2(result.data), plus(product(p.row, split.columns), uvec2(p.first, 0)));
  const uint words = words_of(to, size);
  for (uint i = p.lane; i < words; i += p.lanes) {
    uvec2 bits = uvec2(0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint k = element_of_word(to, i, j);
      if (known && k < size) bits[j] = bits_at(from, k).x;
    }
    write_word_of(to, i, size, bits);
  }
}
