#pragma once
// The rows of a table that tokens name, bit for bit. Rows of other tokens are zeros.
#include "elements.cuh"

// `split` has the rows of the result, `vocabulary` is the number of rows of the table.
template <class Number>
__device__ void embed_rows(wye_span<const Number> table, wye_span<const unsigned> tokens, wye_span<Number> result,
                           RowSplit split, unsigned vocabulary) {
  constexpr unsigned width = Pack<Number>::width;
  const Piece p = piece_of(split);
  if (p.size == 0) return;
  const unsigned token = tokens[p.row];
  const bool known = token < vocabulary;
  const Number* const from = table.data + (known ? Size(token) * split.columns : 0) + (p.first - p.row * split.columns);
  Number* const to = result.data + p.first;
  each_pack<width>(
      p, has_quads(from) && has_quads(to) ? p.size / width : 0,
      [&](unsigned i) {
        Pack<Number> pack = {};
        if (known) pack = pack_at(from, i);
        reinterpret_cast<Pack<Number>*>(to)[i] = pack;
      },
      [&](unsigned i, unsigned) { to[i] = known ? from[i] : Number(0); });
}
