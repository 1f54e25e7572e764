// Prefix sums of bfloat16.
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scan_bfloat16(wye_span<const Bfloat16Element::Number> x, wye_span<const Bfloat16Element::Term> offsets, wye_span<Bfloat16Element::Term> sums, RowSplit split,
           unsigned exclusive) {
  scan_rows<Bfloat16Element>(x, offsets, sums, split, exclusive);
}
