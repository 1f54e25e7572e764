// Multiplies rows of 32-bit integers.
#include "scale.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_scale_word(wye_span<const WordElement::Number> factors, wye_span<WordElement::Number> x, RowSplit split, Factor a) {
  scale_rows<WordElement>(factors, x, split, a);
}
