// Extremes of half.
#include "extremes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_extreme_half(wye_span<const HalfElement::Number> x, wye_span<const unsigned> candidates,
                         wye_span<HalfElement::Number> values, wye_span<unsigned> places, RowSplit split, unsigned columns,
                         unsigned flip) {
  find_extremes<HalfElement>(x, candidates, values, places, split, columns, flip);
}
