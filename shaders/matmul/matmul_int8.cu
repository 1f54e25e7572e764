// Products of int8.
#include "tensor.cuh"

extern "C" __global__ void __launch_bounds__(256, 2)
    wye_matmul_int8(wye_span<const signed char> a, wye_span<const signed char> b, wye_span<int> c, Product shape) {
  __shared__ TensorTiles<Int8> tiles;
  multiply_words<Int8>(a.data, b.data, c.data, shape, NoEpilogue(), tiles);
}
