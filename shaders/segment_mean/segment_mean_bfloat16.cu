// Means of segments of rows of bfloat16.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_mean_bfloat16(wye_span<const Bfloat16::Number> x, wye_span<const unsigned> offsets, wye_span<const float> sums, wye_span<Bfloat16::Number> result, SegmentShape shape) {
  mean_of_segments<Bfloat16>(x, offsets, sums, result, shape);
}
