// Rotary positions of bfloat16.
#include "rope.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_rope_bfloat16(wye_span<Bfloat16::Number> x, wye_span<const unsigned> positions, wye_span<const float> factors,
             Rotation shape) {
  rotate_heads<Bfloat16>(x, positions, factors, shape);
}
