// Prefix sums of float.
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scan(wye_span<const FloatElement::Number> x, wye_span<const FloatElement::Term> offsets, wye_span<FloatElement::Term> sums, RowSplit split,
           unsigned exclusive) {
  scan_rows<FloatElement>(x, offsets, sums, split, exclusive);
}
