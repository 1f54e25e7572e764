// Products of floats with quantized weights.
#include "quantized_matmul.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_quantized_matmul(wye_span<const float> x, wye_span<const unsigned char> weights, wye_span<float> y,
                         QuantizedProduct shape, BlockLayout layout) {
  multiply(FloatRows{x.data}, weights.data, y, shape, layout);
}
