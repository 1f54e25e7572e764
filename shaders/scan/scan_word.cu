// Prefix sums of 32-bit integers.
#include "scan.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scan_word(wye_span<const WordElement::Number> x, wye_span<const WordElement::Term> offsets, wye_span<WordElement::Term> sums, RowSplit split,
           unsigned exclusive) {
  scan_rows<WordElement>(x, offsets, sums, split, exclusive);
}
