// Sums of uint64.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_sum_uint64(wye_span<const Uint64Element::Number> x, wye_span<Uint64Element::Term> sums, RowSplit split) {
  sum_rows<Uint64Element>(x, sums, split);
}
