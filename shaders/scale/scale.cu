// Multiplies rows of float.
#include "scale.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scale(wye_span<const FloatElement::Number> factors, wye_span<FloatElement::Number> x, RowSplit split, Factor a) {
  scale_rows<FloatElement>(factors, x, split, a);
}
