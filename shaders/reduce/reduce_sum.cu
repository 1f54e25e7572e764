// Sums of float.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_reduce_sum(wye_span<const FloatElement::Number> x, wye_span<FloatElement::Term> sums, RowSplit split) {
  sum_rows<FloatElement>(x, sums, split);
}
