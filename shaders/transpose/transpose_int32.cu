// Transposes matrices of int32.
#include "transpose.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_transpose_int32(wye_span<const int> x, wye_span<int> y, Transposition shape) {
  transpose(x.data, y.data, shape);
}
