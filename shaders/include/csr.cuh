#pragma once
// Declarations that the kernels of csr_multiply share. `csr.glsl` describes `blocks`.
#include "flat.cuh"
#include "team.cuh"

constexpr unsigned block_log2 = 10;
constexpr unsigned block_size = 1u << block_log2;

struct Sparse {
  const unsigned* columns;
  const float* values;
  const float* x;
  Size columns_of_x;
};

// Returns the sum of term(i) for every `lanes`-th i from `first` + `lane` on, [first, last).
template <class F>
__device__ float sum_of_terms(Size first, Size last, unsigned lane, unsigned lanes, F term) {
  float parts[4] = {};
  Size i = first + lane;
  for (; i + 3 * lanes < last; i += 4 * lanes) {
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) parts[j] += term(i + j * lanes);
  }
#pragma unroll
  for (unsigned j = 0; j < 3; ++j)
    if (i + j * lanes < last) parts[j] += term(i + j * lanes);
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// Returns the sum of products of elements. A column that x does not have counts as 0.
__device__ float products_of(Sparse a, Size first, Size last, unsigned lane, unsigned lanes) {
  return sum_of_terms(first, last, lane, lanes, [=](Size k) {
    const unsigned column = a.columns[k];
    return column < a.columns_of_x ? a.values[k] * a.x[column] : 0.0f;
  });
}

__device__ float sum_of_blocks(const float* blocks, Size first, Size last, unsigned lane, unsigned lanes) {
  return sum_of_terms(first, last, lane, lanes, [=](Size k) { return blocks[k]; });
}
