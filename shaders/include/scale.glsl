// Rows times factors, in place. An invocation writes whole words, which have two elements of 16 bits. Other rows and other
// arrays may have one of the two.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "numbers.glsl"

struct Factor {
  uint low, high;
};
layout(push_constant) uniform Arguments {
  ConstNumberSpan factors;  // one for each row; empty: all rows have the factor `a`
  NumberSpan x;
  RowSplit split;
  Factor a;
};

void main() {
  const Piece p = piece_of(split);
  const uvec2 bits = factors.size == uvec2(0) ? uvec2(a.low, a.high) : bits_at(line_of(uvec2(factors.data), uvec2(p.row, 0)), 0);
  const TERM factor = term_of(bits);
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  const uint size = p.last - p.first;
  if (size == 0) return;
  PackedLine line = line_of(uvec2(x.data), first);
#if defined(HALF) || defined(BFLOAT16)
  for (uint i = p.lane; 2 * i < size + line.skip; i += p.lanes) {
    const bool has_low = 2 * i >= line.skip, has_high = 2 * i + 1 - line.skip < size;
    uvec2 scaled = uvec2(0);
    if (has_low) scaled.x = narrow(floatBitsToUint(product_of(term_at(line, 2 * i - line.skip), factor)));
    if (has_high) scaled.y = narrow(floatBitsToUint(product_of(term_at(line, 2 * i + 1 - line.skip), factor)));
    Word word = Word(element(uvec2(line.words), uvec2(i, 0)));
    set_bits(word, (has_low ? 0xffffu : 0u) | (has_high ? 0xffff0000u : 0u), scaled.x | scaled.y << 16);
  }
#else
  for (uint i = p.lane; i < size; i += p.lanes)
    write_number(uvec2(x.data), plus(first, uvec2(i, 0)), bits_of(product_of(term_at(line, i), factor)));
#endif
}
