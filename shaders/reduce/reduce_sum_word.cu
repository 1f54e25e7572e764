// Sums of 32-bit integers.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_sum_word(wye_span<const WordElement::Number> x, wye_span<WordElement::Term> sums, RowSplit split) {
  sum_rows<WordElement>(x, sums, split);
}
