// Products of blocks q8_0 with quantized weights.
#include "quantized_matmul.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_quantized_matmul_int8(wye_span<const unsigned char> x, wye_span<const unsigned char> weights, wye_span<float> y,
                              QuantizedProduct shape, BlockLayout layout) {
  multiply(Int8Rows{x.data}, weights.data, y, shape, layout);
}
