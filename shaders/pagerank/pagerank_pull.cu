// One iteration: each node adds up what its links bring. Leaves, for each 256 nodes, how much their ranks changed and how much
// rank lies on those of them that link nowhere. Some lanes of a warp share a node, as many as it has links on average: they
// read neighbouring links, and no thread waits for another with far more of them.
#include "pagerank.cuh"

// What every `lanes`-th of the links [first, last) brings.
__device__ float given(const float* shares, const unsigned* sources, unsigned nodes, Size first, Size last, unsigned lanes) {
  float sum = 0.0f;
  for (Size i = first; i < last; i += lanes) sum += shares[min(sources[i], nodes)];
  return sum;
}

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_pull(wye_span<const unsigned> offsets, wye_span<const unsigned> sources, wye_span<float> shares,
                      wye_span<const float> blocks, wye_span<float> ranks, wye_span<float> partials,
                      wye_span<const Summary> summary, unsigned nodes, unsigned turn, float damping) {
  __shared__ float brought[nodes_per_group];
  if (summary[0].converged != 0) return;
  unsigned lanes_log2 = 0;
  while (lanes_log2 < 5 && (Size(nodes) << (lanes_log2 + 1)) <= sources.size) ++lanes_log2;
  const unsigned lanes = 1u << lanes_log2, lane = threadIdx.x & (lanes - 1);
  const Size first_node = flat_block() * nodes_per_group;
  const float* const from = part_of(shares.data, turn, nodes);

  for (unsigned at = threadIdx.x >> lanes_log2; at < nodes_per_group; at += nodes_per_group >> lanes_log2) {
    const Size node = first_node + at;
    float sum = 0.0f;
    if (node < nodes) {
      const Size begin = min(Size(offsets[node]), sources.size), end = min(Size(offsets[node + 1]), sources.size);
      if (end < begin + 2 * links_per_block) {
        sum = given(from, sources.data, nodes, begin + lane, end, lanes);
      } else {
        const Size whole = (begin + links_per_block - 1) / links_per_block, whole_end = end / links_per_block;
        for (Size i = whole + lane; i < whole_end; i += lanes) sum += blocks[i];
        sum += given(from, sources.data, nodes, begin + lane, whole * links_per_block, lanes);
        sum += given(from, sources.data, nodes, whole_end * links_per_block + lane, end, lanes);
      }
    }
    sum = team_result(sum, lanes_log2);
    if (lane == 0) brought[at] = sum;
  }
  __syncthreads();

  const Size node = first_node + threadIdx.x;
  Pair partial{};
  if (node < nodes) {
    const float dangling = partials[2 * ((Size(nodes) + nodes_per_group - 1) / nodes_per_group)];
    const float before = ranks[node];
    const float rank =
        (1.0f - damping) / float(nodes) + damping * (brought[threadIdx.x] + dangling / float(nodes));
    const float part = part_of(shares.data, 2, nodes)[node];
    ranks[node] = rank;
    part_of(shares.data, 1 - turn, nodes)[node] = rank * part;
    partial = {fabsf(rank - before), part == 0.0f ? rank : 0.0f};
  }
  const Pair sums = team_result(partial, 8);
  if (threadIdx.x == 0 && node < nodes) {
    partials[2 * flat_block()] = sums.x;
    partials[2 * flat_block() + 1] = sums.y;
  }
}
