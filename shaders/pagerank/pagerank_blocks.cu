// One iteration, in graphs with many links, first: adds up the changes of each block of 2048 links, if all
// lead to one node.
#include "pagerank.cuh"

// Returns the last node whose links begin at `link` or before.
__device__ unsigned node_of(const unsigned* offsets, unsigned nodes, unsigned link) {
  unsigned low = 0, high = nodes;
  while (high - low > 1) {
    const unsigned middle = low + (high - low) / 2;
    if (offsets[middle] <= link)
      low = middle;
    else
      high = middle;
  }
  return low;
}

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_blocks(wye_span<const unsigned> offsets, wye_span<const unsigned> sources, wye_span<const float> shares,
                        wye_span<float> blocks, wye_span<const Summary> summary, unsigned nodes, unsigned turn) {
  const Size block = flat_block();
  if (summary[0].converged != 0 || block >= blocks.size) return;
  const unsigned first = unsigned(block) * links_per_block;
  if (offsets[node_of(offsets.data, nodes, first) + 1] - first < links_per_block) return;

  const float* const given = part_of(shares.data, turn, nodes);
  float sum = 0.0f;
  if (has_weights(shares.size, nodes)) {
    const float* const fractions = part_of(shares.data, 5, nodes);
    for (unsigned i = first + threadIdx.x, end = i + links_per_block; i != end; i += 256)
      sum += fractions[i] * given[min(sources[i], nodes)];
  } else {
    for (unsigned i = 0; i < links_per_block; i += 256) sum += given[min(sources[first + i + threadIdx.x], nodes)];
  }
  const float all = team_result(sum, 8);
  if (threadIdx.x == 0) blocks[block] = all;
}
