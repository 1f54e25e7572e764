// Extremes of uint64.
#include "extremes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_extreme_uint64(wye_span<const Uint64Element::Number> x, wye_span<const unsigned> candidates,
                         wye_span<Uint64Element::Number> values, wye_span<unsigned> places, RowSplit split, unsigned columns,
                         unsigned flip) {
  find_extremes<Uint64Element>(x, candidates, values, places, split, columns, flip);
}
