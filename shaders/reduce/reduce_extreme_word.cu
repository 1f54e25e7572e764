// Extremes of 32-bit integers.
#include "extremes.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_extreme_word(wye_span<const WordElement::Number> x, wye_span<const unsigned> candidates,
                         wye_span<WordElement::Number> values, wye_span<unsigned> places, RowSplit split, unsigned columns,
                         unsigned flip) {
  find_extremes<WordElement>(x, candidates, values, places, split, columns, flip);
}
