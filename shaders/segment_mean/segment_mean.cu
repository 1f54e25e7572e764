// Means of segments of rows of float.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_mean(wye_span<const Float::Number> x, wye_span<const unsigned> offsets, wye_span<const float> sums, wye_span<Float::Number> result, SegmentShape shape) {
  mean_of_segments<Float>(x, offsets, sums, result, shape);
}
