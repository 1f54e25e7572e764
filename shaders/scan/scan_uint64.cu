// Prefix sums of uint64.
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scan_uint64(wye_span<const Uint64Element::Number> x, wye_span<const Uint64Element::Term> offsets, wye_span<Uint64Element::Term> sums, RowSplit split,
           unsigned exclusive) {
  scan_rows<Uint64Element>(x, offsets, sums, split, exclusive);
}
