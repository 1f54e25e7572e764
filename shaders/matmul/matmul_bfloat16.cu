// Products of bfloat16.
#include "bfloat16_tensor.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_bfloat16(wye_span<const unsigned short> a, wye_span<const unsigned short> b, wye_span<const float> bias,
                        wye_span<const float> residual, wye_span<float> c, Product shape) {
  multiply_bfloat16(a.data, b.data, c.data, shape, Epilogue<Float>{bias, residual, c.data, shape});
}
