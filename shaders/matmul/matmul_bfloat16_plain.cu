// Products of bfloat16 without tensor cores.
#include "matmul.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_bfloat16_plain(wye_span<const unsigned short> a, wye_span<const unsigned short> b, wye_span<const float> bias,
                              wye_span<const float> residual, wye_span<float> c, Product shape) {
  __shared__ ProductTiles tiles;
  multiply<Bfloat16>(a.data, b.data, c.data, shape, Epilogue<Float>{bias, residual, c.data, shape}, tiles);
}
