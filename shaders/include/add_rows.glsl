// Adds to each row of x a row of a table. Rows whose number the table does not have stay as they are. An invocation writes
// whole words, which have two elements of 16 bits. Other rows and other arrays may have one of the two.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "lines.glsl"

layout(push_constant) uniform Arguments {
  NumberSpan x;
  ConstNumberSpan table;
  ConstWordSpan rows;  // one for each row of x; empty: row 0 for all
  RowSplit split;      // of x
  uint table_rows;
};

void main() {
  const Piece p = piece_of(split);
  const uint size = p.last - p.first;
  if (size == 0) return;
  const uint row = rows.size == uvec2(0) ? 0u : rows.data.at[p.row];
  if (row >= table_rows) return;
  PackedLine added = line_of(uvec2(table.data), plus(product(row, split.columns), uvec2(p.first, 0)));
  PackedLine to = line_of(uvec2(x.data), plus(product(p.row, split.columns), uvec2(p.first, 0)));
  const uint words = words_of(to, size);
  for (uint i = p.lane; i < words; i += p.lanes) {
    vec2 values = vec2(0.0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint k = element_of_word(to, i, j);
      if (k < size) values[j] = term_at(to, k) + term_at(added, k);
    }
    write_values_of(to, i, size, values);
  }
}
