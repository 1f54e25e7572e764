#pragma once
// Products of half, with tensor cores if the architecture has ldmatrix.
#include "epilogue.cuh"
#include "numbers.cuh"
#include "product.cuh"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#include "matmul.cuh"
#else
#include "tensor.cuh"
#endif

template <class C, class E>
__device__ void multiply_half(const unsigned short* a, const unsigned short* b, C* c, const Product& shape,
                              const E& epilogue) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
  __shared__ ProductTiles tiles;
  multiply<Half>(a, b, c, shape, epilogue, tiles);
#else
  __shared__ TensorTiles<TensorHalf> tiles;
  multiply_words<TensorHalf>(a, b, c, shape, epilogue, tiles);
#endif
}
