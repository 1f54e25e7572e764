// Norms of half.
#include "norms.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_norm_half(wye_span<const HalfElement::Number> x, wye_span<float> results, RowSplit split, unsigned norm) {
  norms_of<HalfElement>(x, results, split, norm);
}
