// Sums of products of half.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_dot_half(wye_span<const HalfElement::Number> x, wye_span<const HalfElement::Number> y, wye_span<HalfElement::Term> sums,
              RowSplit split) {
  sum_products<HalfElement>(x, y, sums, split);
}
