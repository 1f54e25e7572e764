// Prefix sums of the pieces of rows. The invocations of a piece process one chunk of it after the other: each adds up four
// adjacent elements and adds the sums of the invocations before it, the chunks before and the offset of the piece. Pieces
// of fewer than 256 invocations have one chunk.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "numbers.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  ConstNumberSpan offsets;  // of terms, one for each piece; empty: zeros
  NumberSpan sums;          // of terms
  RowSplit split;
  uint exclusive;
};

TERM offset_of(uvec2 piece) {
  if (!is_less(piece, offsets.size)) return TERM(0);
#ifdef UINT64
  ConstWords words = ConstWords(element(uvec2(offsets.data), plus(piece, piece)));
  return uvec2(words.at[0], words.at[1]);
#else
  const uint bits = ConstWords(element(uvec2(offsets.data), piece)).at[0];
#ifdef WORD
  return bits;
#else
  return uintBitsToFloat(bits);
#endif
#endif
}

#ifdef SUBGROUPS
#include "scan_subgroups.glsl"
#else
shared TERM of_invocations[256];
shared TERM of_groups[16];

// Returns the sum of `mine` of the invocations of the piece before this one. Sets `all` to the sum over 256 invocations.
// Adds groups of 16, then their sums: that needs fewer barriers than pairs, quads and so on.
TERM sum_before(TERM mine, out TERM all) {
  const uint me = gl_LocalInvocationID.x, place = me & ((1 << split.lanes_log2) - 1);
  of_invocations[me] = mine;
  barrier();
  TERM before = TERM(0);
  for (uint i = me - (place & 15); i < me; ++i) before = sum_of(before, of_invocations[i]);
  if ((me & 15) == 15) of_groups[me >> 4] = sum_of(before, mine);
  barrier();
  all = TERM(0);
  TERM of_groups_before = TERM(0);
  const uint group = me >> 4;
  for (uint i = (me - place) >> 4; i < 16; ++i) {
    if (i == group) of_groups_before = all;
    all = sum_of(all, of_groups[i]);
  }
  return split.lanes_log2 <= 4 ? before : sum_of(of_groups_before, before);
}

void main() {
  const Piece p = piece_of(split);
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  PackedLine line = line_of(uvec2(x.data), first);
  TERM carry = offset_of(uvec2(p.number, 0));
  // All invocations of a workgroup have equally many chunks, because they meet at barriers.
  const uint longest = min(split.columns, longest_piece);
  for (uint chunk = 0; (chunk << split.lanes_log2) * 4 < longest; ++chunk) {
    const uint begin = p.first + ((chunk << split.lanes_log2) + p.lane) * 4;
    const uint count = begin < p.last ? min(p.last - begin, 4) : 0;
    TERM upto[5];
    upto[0] = TERM(0);
    for (uint j = 0; j < 4; ++j) {
      upto[j + 1] = upto[j];
      if (j < count) upto[j + 1] = sum_of(upto[j], term_at(line, begin - p.first + j));
    }
    TERM all;
    const TERM before = sum_of(carry, sum_before(upto[4], all));
    for (uint j = 0; j < 4; ++j) {
      if (j >= count) continue;
      const TERM own = exclusive != 0 ? upto[j] : upto[j + 1];
      write_term(uvec2(sums.data), plus(first, uvec2(begin - p.first + j, 0)), bits_of(sum_of(before, own)));
    }
    carry = sum_of(carry, all);
  }
}
#endif
