// Computes rows of the product of a sparse matrix and a vector. 2^lanes_log2 threads share a row.
#include "csr.cuh"

// The blocks between two elements: from the next whole one up to the last whole one.
struct Whole {
  Size first, last;
};
__device__ Whole whole_blocks(Size first, Size last) {
  return {(first + block_size - 1) >> block_log2, last >> block_log2};
}

extern "C" __global__ void __launch_bounds__(256)
    wye_csr_multiply(wye_span<const unsigned> offsets, wye_span<const unsigned> columns, wye_span<const float> values,
                     wye_span<const float> x, wye_span<const float> blocks, wye_span<float> y, unsigned lanes_log2) {
  const Size row = flat_thread() >> lanes_log2;
  const unsigned lanes = 1u << lanes_log2, lane = threadIdx.x & (lanes - 1);
  const bool exists = row < y.size;
  float sum = 0.0f;
  if (exists) {
    const Sparse a = {columns.data, values.data, x.data, x.size};
    const Size first = min(Size(offsets[row]), values.size), last = max(min(Size(offsets[row + 1]), values.size), first);
    if (last - first < 2 * block_size) {
      sum = products_of(a, first, last, lane, lanes);
    } else {
      const Whole whole = whole_blocks(first, last);
      sum = products_of(a, first, whole.first << block_log2, lane, lanes) +
            products_of(a, whole.last << block_log2, last, lane, lanes);
      if (whole.last - whole.first < 2 * block_size) {
        sum += sum_of_blocks(blocks.data, whole.first, whole.last, lane, lanes);
      } else {
        const Whole second = whole_blocks(whole.first, whole.last);
        const Size of_values = values.size >> block_log2;
        sum += sum_of_blocks(blocks.data, whole.first, second.first << block_log2, lane, lanes) +
               sum_of_blocks(blocks.data, second.last << block_log2, whole.last, lane, lanes) +
               sum_of_blocks(blocks.data, of_values + second.first, of_values + second.last, lane, lanes);
      }
    }
  }
  const float all = team_result(sum, lanes_log2);
  if (lane == 0 && exists) y[row] = all;
}
