// Prefix sums of the pieces of rows. The invocations of a piece process one chunk of it after the other: each adds up four
// adjacent elements and adds the sums of the invocations before it, the chunks before and the offset of the piece. Pieces
// of fewer than 256 invocations have one chunk. The two texts add in the same order.
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
shared TERM memory[256 + 16];  // sums of invocations, then of groups of 16 of them

// Return the sum of two, four or eight adjacent sums, in the order of a tree.
TERM two_from(uint i) { return sum_of(memory[i], memory[i + 1]); }
TERM four_from(uint i) { return sum_of(two_from(i), two_from(i + 2)); }
TERM eight_from(uint i) { return sum_of(four_from(i), four_from(i + 4)); }

// Adds those of `count` sums, at most 16 and from `first` on, that are before number `place` to `before`. Sets `all`, which
// is the sum at that place, to their sum.
void add_others(uint first, uint place, uint count, inout TERM before, inout TERM all) {
  for (uint n = 1; n < count; n <<= 1) {
    const uint other = first + ((place ^ n) & ~(n - 1));
    TERM sum;
    if (n == 1)
      sum = memory[other];
    else if (n == 2)
      sum = two_from(other);
    else if (n == 4)
      sum = four_from(other);
    else
      sum = eight_from(other);
    if ((place & n) != 0) before = sum_of(sum, before);
    all = sum_of(all, sum);
  }
}

// Returns the sum of `mine` of the invocations of the piece before this one. Sets `all` to the sum over the piece's
// invocations. Adds in the order of a tree, as scan_subgroups.glsl does. Groups of 16 need fewer barriers than pairs do.
TERM sum_before(TERM mine, out TERM all) {
  const uint me = gl_LocalInvocationID.x, lanes = 1u << split.lanes_log2, count = min(lanes, 16u);
  memory[me] = mine;
  barrier();
  TERM before = TERM(0);
  all = mine;
  add_others(me & ~(count - 1), me & (count - 1), count, before, all);
  if (lanes <= 16) return before;  // all invocations of the workgroup
  if ((me & 15) == 15) memory[256 + (me >> 4)] = all;
  barrier();
  add_others(256 + ((me & ~(lanes - 1)) >> 4), (me & (lanes - 1)) >> 4, lanes >> 4, before, all);
  return before;
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
