// Sums of half.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_sum_half(wye_span<const HalfElement::Number> x, wye_span<HalfElement::Term> sums, RowSplit split) {
  sum_rows<HalfElement>(x, sums, split);
}
