// Rotary positions of half.
#include "rope.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_rope_half(wye_span<Half::Number> x, wye_span<const unsigned> positions, wye_span<const float> factors,
             Rotation shape) {
  rotate_heads<Half>(x, positions, factors, shape);
}
