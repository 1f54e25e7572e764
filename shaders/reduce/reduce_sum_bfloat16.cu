// Sums of bfloat16.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_sum_bfloat16(wye_span<const Bfloat16Element::Number> x, wye_span<Bfloat16Element::Term> sums, RowSplit split) {
  sum_rows<Bfloat16Element>(x, sums, split);
}
