// Sums of the pieces of rows: of the elements of x, or with PRODUCTS of the products of the elements of x and y. An
// invocation adds at most 64 terms to each of its four sums, which bounds the rounding error.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "numbers.glsl"

#define PARTIAL TERM
TERM combine(TERM a, TERM b) { return sum_of(a, b); }
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
#ifdef PRODUCTS
  ConstNumberSpan y;
#endif
  NumberSpan sums;  // one for each piece
  RowSplit split;
};

void main() {
  const Piece p = piece_of(split);
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  PackedLine xs = line_of(uvec2(x.data), first);
#ifdef PRODUCTS
  PackedLine ys = line_of(uvec2(y.data), first);
#endif
  const TERM zero = TERM(0);
  TERM parts[4] = TERM[](zero, zero, zero, zero);
  const uint size = p.last - p.first;
  uint i = p.lane;
#ifdef SUBGROUPS
  for (; i + 7 * p.lanes < size; i += 8 * p.lanes) {  // eight loads in flight
    TERM x_terms[8], y_terms[8];
    for (uint j = 0; j < 8; ++j) {
      x_terms[j] = term_at(xs, i + j * p.lanes);
#ifdef PRODUCTS
      y_terms[j] = term_at(ys, i + j * p.lanes);
#endif
    }
    for (uint j = 0; j < 8; ++j)
#ifdef PRODUCTS
      parts[j & 3] = sum_of(parts[j & 3], product_of(x_terms[j], y_terms[j]));
#else
      parts[j & 3] = sum_of(parts[j & 3], x_terms[j]);
#endif
  }
#endif
  for (; i < size; i += 4 * p.lanes)
    for (uint j = 0; j < 4; ++j) {
      const uint k = i + j * p.lanes;
      if (k >= size) continue;
#ifdef PRODUCTS
      parts[j] = sum_of(parts[j], product_of(term_at(xs, k), term_at(ys, k)));
#else
      parts[j] = sum_of(parts[j], term_at(xs, k));
#endif
    }
  const TERM mine = sum_of(sum_of(parts[0], parts[1]), sum_of(parts[2], parts[3]));
  const TERM all = team_result(mine, split.lanes_log2);
  const uvec2 number = uvec2(p.number, 0);
  if (p.lane == 0 && is_less(number, sums.size)) write_term(uvec2(sums.data), number, bits_of(all));
}
