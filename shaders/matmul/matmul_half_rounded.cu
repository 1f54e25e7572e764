// Products of half, rounded to half.
#include "half_tensor.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_half_rounded(wye_span<const unsigned short> a, wye_span<const unsigned short> b,
                            wye_span<const unsigned short> bias, wye_span<const unsigned short> residual,
                            wye_span<const float> sums, wye_span<unsigned short> c, Product shape) {
  multiply_half(a.data, b.data, c.data, shape, Epilogue<Half>{bias, residual, sums.data, shape});
}
