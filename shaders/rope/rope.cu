// Rotary positions of float.
#include "rope.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_rope(wye_span<Float::Number> x, wye_span<const unsigned> positions, wye_span<const float> factors,
             Rotation shape) {
  rotate_heads<Float>(x, positions, factors, shape);
}
