// Multiplies rows of bfloat16.
#include "scale.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scale_bfloat16(wye_span<const Bfloat16Element::Number> factors, wye_span<Bfloat16Element::Number> x, RowSplit split, Factor a) {
  scale_rows<Bfloat16Element>(factors, x, split, a);
}
