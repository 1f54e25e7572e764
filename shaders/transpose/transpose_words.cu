// Transposes matrices of elements of 32 bits.
#include "transpose.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_transpose_words(wye_span<const unsigned> x, wye_span<unsigned> y, Transposition shape) {
  transpose(x.data, y.data, shape);
}
