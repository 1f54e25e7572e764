#pragma once
// The first largest element of each piece of rows, or the first smallest if `flip` inverts the keys. Of rows of several
// pieces, a second call selects one of the candidates, which are the places that the first call found.
#include "elements.cuh"
#include "team.cuh"

template <class Key>
struct Extreme {
  Key key;
  unsigned place;  // column of the row
};
template <class Key>
__device__ Extreme<Key> shuffled(Extreme<Key> v, int bits) {
  return {__shfl_xor_sync(0xffffffffu, v.key, bits), __shfl_xor_sync(0xffffffffu, v.place, bits)};
}
template <class Key>
__device__ Extreme<Key> combine(Extreme<Key> a, Extreme<Key> b) {
  return (b.key == a.key ? b.place < a.place : a.key < b.key) ? b : a;
}

// `candidates` are places of each row, as many as `split` has columns; if empty, all places are candidates. `columns` are
// those of x. Writes `values` and `places` unless they are empty.
template <class T>
__device__ void find_extremes(wye_span<const typename T::Number> x, wye_span<const unsigned> candidates,
                              wye_span<typename T::Number> values, wye_span<unsigned> places, RowSplit split,
                              unsigned columns, unsigned flip) {
  typedef typename T::Key Key;
  constexpr unsigned width = Pack<typename T::Number>::width;
  const Piece p = piece_of(split);
  const Key flips = Key((long long)int(flip));
  const typename T::Number* const row = x.data + p.row * columns;
  const unsigned first = unsigned(p.first - p.row * split.columns);
  Extreme<Key> mine = {0, 0xffffffffu};
  if (candidates.size != 0) {
    for (unsigned i = p.lane; i < p.size; i += p.lanes) {
      const unsigned place = candidates[p.first + i];
      mine = combine(mine, {T::key(row[place]) ^ flips, place});
    }
  } else {
    const auto add = [&](typename T::Number bits, unsigned i) { mine = combine(mine, {T::key(bits) ^ flips, first + i}); };
    const typename T::Number* const xs = row + first;
    each_pack<width>(
        p, has_quads(xs) ? p.size / width : 0,
        [&](unsigned i) {
          const auto pack = pack_at(xs, i);
#pragma unroll
          for (unsigned j = 0; j < width; ++j) add(pack.at[j], i * width + j);
        },
        [&](unsigned i, unsigned) { add(xs[i], i); });
  }
  const Extreme<Key> all = team_result(mine, split.lanes_log2);
  if (p.lane != 0) return;
  if (p.number < places.size) places[p.number] = all.place;
  if (p.number < values.size) values[p.number] = row[all.place];
}
