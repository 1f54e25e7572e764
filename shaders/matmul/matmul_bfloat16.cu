// Products of bfloat16, with tensor cores if the architecture supports bfloat16.
#include "numbers.cuh"
#include "product.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#include "matmul.cuh"
#else
#include "tensor.cuh"
#endif

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_bfloat16(wye_span<const unsigned short> a, wye_span<const unsigned short> b, wye_span<float> c, Product shape) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __shared__ ProductTiles tiles;
  multiply<Bfloat16>(a.data, b.data, c.data, shape, tiles);
#else
  __shared__ TensorTiles<TensorBfloat16> tiles;
  multiply_words<TensorBfloat16>(a.data, b.data, c.data, shape, tiles);
#endif
}
