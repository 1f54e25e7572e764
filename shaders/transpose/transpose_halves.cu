// Transposes matrices of elements of 16 bits.
#include "transpose.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_transpose_halves(wye_span<const unsigned short> x, wye_span<unsigned short> y, Transposition shape) {
  transpose(x.data, y.data, shape);
}
