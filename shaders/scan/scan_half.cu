// Prefix sums of half.
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scan_half(wye_span<const HalfElement::Number> x, wye_span<const HalfElement::Term> offsets, wye_span<HalfElement::Term> sums, RowSplit split,
           unsigned exclusive) {
  scan_rows<HalfElement>(x, offsets, sums, split, exclusive);
}
