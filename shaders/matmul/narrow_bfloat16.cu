// Rounds to bfloat16.
#include "narrow.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_narrow_bfloat16(wye_span<const float> from, wye_span<unsigned short> to) {
  narrow(from, to, bfloat16_bits);
}
