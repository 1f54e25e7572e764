// Extremes of float.
#include "extremes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_extreme(wye_span<const FloatElement::Number> x, wye_span<const unsigned> candidates,
                         wye_span<FloatElement::Number> values, wye_span<unsigned> places, RowSplit split, unsigned columns,
                         unsigned flip) {
  find_extremes<FloatElement>(x, candidates, values, places, split, columns, flip);
}
