// Products of float32.
#include "matmul.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul(wye_span<const float> a, wye_span<const float> b, wye_span<const float> bias, wye_span<const float> residual,
               wye_span<float> c, Product shape) {
  __shared__ ProductTiles tiles;
  multiply<Float>(a.data, b.data, c.data, shape, Epilogue<Float>{bias, residual, c.data, shape}, tiles);
}
