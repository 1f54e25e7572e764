// Extremes of bfloat16.
#include "extremes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_extreme_bfloat16(wye_span<const Bfloat16Element::Number> x, wye_span<const unsigned> candidates,
                         wye_span<Bfloat16Element::Number> values, wye_span<unsigned> places, RowSplit split, unsigned columns,
                         unsigned flip) {
  find_extremes<Bfloat16Element>(x, candidates, values, places, split, columns, flip);
}
