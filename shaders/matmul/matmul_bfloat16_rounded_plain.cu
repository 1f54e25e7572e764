// Products of bfloat16, rounded to bfloat16, without tensor cores.
#include "matmul.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_bfloat16_rounded_plain(wye_span<const unsigned short> a, wye_span<const unsigned short> b,
                                      wye_span<const unsigned short> bias, wye_span<const unsigned short> residual,
                                      wye_span<const float> sums, wye_span<unsigned short> c, Product shape) {
  __shared__ ProductTiles tiles;
  multiply<Bfloat16>(a.data, b.data, c.data, shape, Epilogue<Bfloat16>{bias, residual, sums.data, shape}, tiles);
}
