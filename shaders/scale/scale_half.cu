// Multiplies rows of half.
#include "scale.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scale_half(wye_span<const HalfElement::Number> factors, wye_span<HalfElement::Number> x, RowSplit split, Factor a) {
  scale_rows<HalfElement>(factors, x, split, a);
}
