// Norms of bfloat16.
#include "norms.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_norm_bfloat16(wye_span<const Bfloat16Element::Number> x, wye_span<float> results, RowSplit split, unsigned norm) {
  norms_of<Bfloat16Element>(x, results, split, norm);
}
