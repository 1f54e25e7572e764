// Means of segments of rows of half.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_mean_half(wye_span<const Half::Number> x, wye_span<const unsigned> offsets, wye_span<const float> sums, wye_span<Half::Number> result, SegmentShape shape) {
  mean_of_segments<Half>(x, offsets, sums, result, shape);
}
