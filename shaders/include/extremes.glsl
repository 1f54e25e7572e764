// The first largest element of each piece of rows, or the first smallest if `flip` inverts the keys. Of rows of several
// pieces, a second call selects one of the candidates, which are the places that the first call found.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "numbers.glsl"

struct Extreme {
  uvec2 key;
  uint place;  // column of the row
};
#define PARTIAL Extreme
Extreme combine(Extreme a, Extreme b) {
  if (b.key == a.key ? b.place < a.place : is_less(a.key, b.key)) return b;
  return a;
}
#ifdef SUBGROUPS
Extreme exchanged(Extreme one, uint reach) {
  return Extreme(exchanged(one.key, reach), exchanged(one.place, reach));
}
#endif
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  ConstNumberSpan candidates;  // of each row, `split.columns` places; empty: all places
  NumberSpan values;           // of each piece; empty: none are written
  NumberSpan places;           // the same
  RowSplit split;
  uint columns;  // of x
  uint flip;
};

// Returns a number that has the order of the elements. All NaN have the largest number, and both zeros the same one.
uvec2 key_of(uvec2 bits) {
#if defined(UINT64)
  return bits ^ flip;
#elif defined(WORD)
  return uvec2(bits.x ^ flip, 0);
#else
#if defined(HALF)
  const uint all = bits.x << 16, largest = 0x7c000000u;
#elif defined(BFLOAT16)
  const uint all = bits.x << 16, largest = 0x7f800000u;
#else
  const uint all = bits.x, largest = 0x7f800000u;
#endif
  const uint size = all & 0x7fffffffu, zero = 0x80000000u;
  const uint key = size > largest ? 0xffffffffu : all > size ? zero - size : zero + size;
  return uvec2(key ^ flip, 0);
#endif
}

void main() {
  const Piece p = piece_of(split);
  const uvec2 row = product(p.row, columns);
  const bool has_candidates = candidates.size != uvec2(0);
  const uvec2 candidates_of_row = product(p.row, split.columns);
  Extreme mine = Extreme(uvec2(0), 0xffffffffu);
  uint i = p.first + p.lane;
#ifdef SUBGROUPS
  if (!has_candidates) {
    PackedLine line = line_of(uvec2(x.data), plus(row, uvec2(p.first, 0)));
    for (; i + 3 * p.lanes < p.last; i += 4 * p.lanes) {  // four loads in flight
      uvec2 bits[4];
      for (uint j = 0; j < 4; ++j) bits[j] = bits_at(line, i - p.first + j * p.lanes);
      for (uint j = 0; j < 4; ++j) mine = combine(mine, Extreme(key_of(bits[j]), i + j * p.lanes));
    }
  }
#endif
  for (; i < p.last; i += p.lanes) {
    uint place = i;
    if (has_candidates)
      place = ConstWords(element(uvec2(candidates.data), plus(candidates_of_row, uvec2(i, 0)))).at[0];
    PackedLine line = line_of(uvec2(x.data), plus(row, uvec2(place, 0)));
    mine = combine(mine, Extreme(key_of(bits_at(line, 0)), place));
  }
  const Extreme all = team_result(mine, split.lanes_log2);
  const uvec2 number = uvec2(p.number, 0);
  if (p.lane != 0) return;
  if (is_less(number, places.size)) write_word(uvec2(places.data), number, all.place);
  if (is_less(number, values.size))
    write_number(uvec2(values.data), number, bits_at(line_of(uvec2(x.data), plus(row, uvec2(all.place, 0))), 0));
}
