// Norms of float.
#include "norms.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_norm(wye_span<const FloatElement::Number> x, wye_span<float> results, RowSplit split, unsigned norm) {
  norms_of<FloatElement>(x, results, split, norm);
}
