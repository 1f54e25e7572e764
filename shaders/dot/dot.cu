// Sums of products of float.
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_dot(wye_span<const FloatElement::Number> x, wye_span<const FloatElement::Number> y, wye_span<FloatElement::Term> sums,
              RowSplit split) {
  sum_products<FloatElement>(x, y, sums, split);
}
