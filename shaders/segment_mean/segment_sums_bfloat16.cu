// Sums of stretches of rows of bfloat16.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_sums_bfloat16(wye_span<const Bfloat16::Number> x, wye_span<const unsigned> offsets, wye_span<float> sums, SegmentShape shape) {
  sum_stretches<Bfloat16>(x, offsets, sums, shape);
}
