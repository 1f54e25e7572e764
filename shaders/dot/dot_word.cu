// Sums of products of 32-bit integers.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_dot_word(wye_span<const WordElement::Number> x, wye_span<const WordElement::Number> y, wye_span<WordElement::Term> sums,
              RowSplit split) {
  sum_products<WordElement>(x, y, sums, split);
}
