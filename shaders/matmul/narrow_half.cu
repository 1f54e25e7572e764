// Rounds to half.
#include "narrow.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_narrow_half(wye_span<const float> from, wye_span<unsigned short> to) {
  narrow(from, to, half_bits);
}
