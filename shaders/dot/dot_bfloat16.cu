// Sums of products of bfloat16.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_dot_bfloat16(wye_span<const Bfloat16Element::Number> x, wye_span<const Bfloat16Element::Number> y, wye_span<Bfloat16Element::Term> sums,
              RowSplit split) {
  sum_products<Bfloat16Element>(x, y, sums, split);
}
