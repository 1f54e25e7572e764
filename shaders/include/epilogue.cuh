#pragma once
// Epilogues of products: c = activation(scale sum + bias) + residual, with numbers of the type of c.
#include "exponential.cuh"
#include "numbers.cuh"
#include "product.cuh"

// `Activation` of include/wye/workloads/matmul.hpp.
enum Activation : unsigned { no_activation, relu, gelu, gelu_tanh, silu };

// Source of the normal distribution's tail: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
__device__ float activated(float x, unsigned activation) {
  if (activation == no_activation) return x;
  if (activation == relu) return x < 0.0f ? 0.0f : x;
  float gate;
  if (activation == gelu) {
    const float t = 1.0f / fmaf(0.23164190f, fabsf(x), 1.0f);
    float tail = fmaf(0.53070271f, t, -0.72657601f);
    tail = fmaf(tail, t, 0.71070687f);
    tail = fmaf(tail, t, -0.14224837f);
    tail = fmaf(tail, t, 0.12741480f) * t * exponential(-0.5f * x * x);
    gate = x < 0.0f ? tail : 1.0f - tail;
  } else {
    const float at = activation == silu ? x : 1.59576912f * fmaf(0.044715f * x * x, x, x);
    const float below = exponential(-fabsf(at));
    gate = (at < 0.0f ? below : 1.0f) / (1.0f + below);
  }
  return gate == 0.0f ? 0.0f : x * gate;
}

// The epilogue of the last stretch.
template <class T>
struct Epilogue {
  wye_span<const typename T::Number> bias;      // one of each column, or empty
  wye_span<const typename T::Number> residual;  // as c, or empty
  const float* sums;                            // of the stretches before, as c
  const Product& shape;

  __device__ bool any() const {
    return shape.last == shape.inner && (shape.first != 0 || shape.scale != 1.0f || bias.size != 0 ||
                                         shape.activation != no_activation || residual.size != 0);
  }
  // Returns element `index` of c, which is in `column`.
  __device__ float operator()(float sum, Size index, unsigned column) const {
    if (shape.first != 0) sum += sums[index];
    sum *= shape.scale;
    if (bias.size != 0) sum += T::at(bias.data + column);
    sum = activated(sum, shape.activation);
    return residual.size != 0 ? sum + T::at(residual.data + index) : sum;
  }
};

struct NoEpilogue {
  __device__ static bool any() { return false; }
  template <class Sum>
  __device__ Sum operator()(Sum sum, Size, unsigned) const {
    return sum;
  }
};

// Applies an epilogue to `count` sums of this thread. `column_of` gives their columns, from `columns` on they are not c's;
// `line` is the index of column 0 in c. The loop is not unrolled, so that kernels stay small: it needs sums in shared memory,
// because registers have no index.
template <unsigned count, class Sum, class E, class F>
__device__ void finish(Sum (&sums)[count], Sum (*staged)[256], const E& epilogue, Size line, unsigned columns, F column_of) {
#pragma unroll
  for (unsigned i = 0; i < count; ++i) staged[i][threadIdx.x] = sums[i];
#pragma unroll 1
  for (unsigned i = 0; i < count; ++i) {
    const unsigned column = column_of(i);
    Sum& sum = staged[i][threadIdx.x];
    if (column < columns) sum = epilogue(sum, line + column, column);
  }
#pragma unroll
  for (unsigned i = 0; i < count; ++i) sums[i] = staged[i][threadIdx.x];
}
