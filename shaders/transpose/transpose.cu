// Transposes matrices of float.
#include "transpose.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_transpose(wye_span<const float> x, wye_span<float> y, Transposition shape) {
  transpose(x.data, y.data, shape);
}
