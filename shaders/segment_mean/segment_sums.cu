// Sums of stretches of rows of float.
#include "segments.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_segment_sums(wye_span<const Float::Number> x, wye_span<const unsigned> offsets, wye_span<float> sums, SegmentShape shape) {
  sum_stretches<Float>(x, offsets, sums, shape);
}
