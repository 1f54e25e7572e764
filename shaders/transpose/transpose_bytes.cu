// Transposes matrices of elements of 8 bits.
#include "transpose.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_transpose_bytes(wye_span<const unsigned char> x, wye_span<unsigned char> y, Transposition shape) {
  transpose(x.data, y.data, shape);
}
