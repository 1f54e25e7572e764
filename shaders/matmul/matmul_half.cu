// Products of half, with tensor cores if the architecture has ldmatrix.
#include "numbers.cuh"
#include "product.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#include "matmul.cuh"
#else
#include "tensor.cuh"
#endif

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_half(wye_span<const unsigned short> a, wye_span<const unsigned short> b, wye_span<float> c, Product shape) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
  __shared__ ProductTiles tiles;
  multiply<Half>(a.data, b.data, c.data, shape, tiles);
#else
  __shared__ TensorTiles<TensorHalf> tiles;
  multiply_words<TensorHalf>(a.data, b.data, c.data, shape, tiles);
#endif
}
