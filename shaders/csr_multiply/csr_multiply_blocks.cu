// Adds up the products of blocks of 1024 elements of one row, or at level 1 the sums of 1024 such blocks.
#include "csr.cuh"

// Returns the last row that begins at element `first` or before.
__device__ unsigned row_of(const unsigned* offsets, unsigned rows, unsigned first) {
  unsigned low = 0, high = rows;
  while (high - low > 1) {
    const unsigned middle = low + (high - low) / 2;
    if (offsets[middle] <= first)
      low = middle;
    else
      high = middle;
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(256)
    wye_csr_multiply_blocks(wye_span<const unsigned> offsets, wye_span<const unsigned> columns, wye_span<const float> values,
                            wye_span<const float> x, wye_span<float> blocks, unsigned level) {
  const Size block = flat_block();
  const unsigned size_log2 = (level + 1) * block_log2;
  if (offsets.size < 2 || block >= values.size >> size_log2) return;
  const unsigned first = unsigned(block) << size_log2;
  if (offsets[row_of(offsets.data, unsigned(offsets.size - 1), first) + 1] - first < 1u << size_log2) return;
  const Sparse a = {columns.data, values.data, x.data, x.size};
  const float mine = level == 0 ? products_of(a, first, Size(first) + block_size, threadIdx.x, 256)
                                : sum_of_blocks(blocks.data, block << block_log2, (block + 1) << block_log2, threadIdx.x, 256);
  const float all = team_result(mine, 8);
  if (threadIdx.x == 0) blocks[level * (values.size >> block_log2) + block] = all;
}
