// Multiplies rows of uint64.
#include "scale.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scale_uint64(wye_span<const Uint64Element::Number> factors, wye_span<Uint64Element::Number> x, RowSplit split, Factor a) {
  scale_rows<Uint64Element>(factors, x, split, a);
}
