// Sums of stretches of rows of half.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_sums_half(wye_span<const Half::Number> x, wye_span<const unsigned> offsets, wye_span<float> sums, SegmentShape shape) {
  sum_stretches<Half>(x, offsets, sums, shape);
}
