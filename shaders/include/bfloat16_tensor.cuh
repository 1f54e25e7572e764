#pragma once
// Products of bfloat16, with tensor cores if the architecture supports bfloat16.
#include "epilogue.cuh"
#include "numbers.cuh"
#include "product.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#include "matmul.cuh"
#else
#include "tensor.cuh"
#endif

template <class C, class E>
__device__ void multiply_bfloat16(const unsigned short* a, const unsigned short* b, C* c, const Product& shape,
                                  const E& epilogue) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  __shared__ ProductTiles tiles;
  multiply<Bfloat16>(a, b, c, shape, epilogue, tiles);
#else
  __shared__ TensorTiles<TensorBfloat16> tiles;
  multiply_words<TensorBfloat16>(a, b, c, shape, epilogue, tiles);
#endif
}
