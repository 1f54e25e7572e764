// Products of float32 in TF32, if the architecture supports it.
#include "epilogue.cuh"
#include "numbers.cuh"
#include "product.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#include "matmul.cuh"
#else
#include "tensor.cuh"
#endif

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_tf32(wye_span<const float> a, wye_span<const float> b, wye_span<const float> bias, wye_span<const float> residual,
                    wye_span<float> c, Product shape) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __shared__ ProductTiles tiles;
  multiply<Float>(a.data, b.data, c.data, shape, Epilogue<Float>{bias, residual, c.data, shape}, tiles);
#else
  __shared__ TensorTiles<Tf32> tiles;
  multiply_words<Tf32>(a.data, b.data, c.data, shape, Epilogue<Float>{bias, residual, c.data, shape}, tiles);
#endif
}
