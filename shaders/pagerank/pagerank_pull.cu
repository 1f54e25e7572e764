// One iteration: computes the next change of each rank from the changes that the links carry, and adds it.
// Writes for each 256 nodes the sum of |change|, and the sum of the changes of nodes without links. Several
// lanes of a warp share a node, as many as the average number of links. They read adjacent links, and no lane
// waits for another lane with far more links.
#include "pagerank.cuh"

// Adds the change of every `lanes`-th of the links [first, last). Without weights there are no fractions.
__device__ void add_links(Sum& sum, const float* shares, const float* fractions, const unsigned* sources, unsigned nodes,
                          Size first, Size last, unsigned lanes) {
  if (fractions != nullptr) {
    for (Size i = first; i < last; i += lanes) sum.add(fractions[i] * shares[min(sources[i], nodes)]);
    return;
  }
  for (Size i = first; i < last; i += lanes) sum.add(shares[min(sources[i], nodes)]);
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
  const float* const fractions = has_weights(shares.size, nodes) ? part_of(shares.data, 5, nodes) : nullptr;

  for (unsigned at = threadIdx.x >> lanes_log2; at < nodes_per_group; at += nodes_per_group >> lanes_log2) {
    const Size node = first_node + at;
    Sum sum;
    if (node < nodes) {
      const Size begin = min(Size(offsets[node]), sources.size), end = min(Size(offsets[node + 1]), sources.size);
      if (end < begin + 2 * links_per_block) {
        add_links(sum, from, fractions, sources.data, nodes, begin + lane, end, lanes);
      } else {
        const Size whole = (begin + links_per_block - 1) / links_per_block, whole_end = end / links_per_block;
        for (Size i = whole + lane; i < whole_end; i += lanes) sum.add(blocks[i]);
        add_links(sum, from, fractions, sources.data, nodes, begin + lane, whole * links_per_block, lanes);
        add_links(sum, from, fractions, sources.data, nodes, whole_end * links_per_block + lane, end, lanes);
      }
    }
    const float all = team_result(sum.value, lanes_log2);
    if (lane == 0) brought[at] = all;
  }
  __syncthreads();

  const Size node = first_node + threadIdx.x;
  Pair partial{};
  if (node < nodes) {
    const float for_all = partials[2 * ((Size(nodes) + nodes_per_group - 1) / nodes_per_group)];
    const float share_of_all =
        has_preferences(shares.size, nodes) ? for_all * part_of(shares.data, 4, nodes)[node] : for_all / float(nodes);
    const float change = damping * (brought[threadIdx.x] + share_of_all);
    const float part = part_of(shares.data, 2, nodes)[node];
    float& low = part_of(shares.data, 3, nodes)[node];
    const float before = ranks[node], corrected = change + low, rank = before + corrected;
    ranks[node] = rank;
    low = corrected - (rank - before);
    part_of(shares.data, 1 - turn, nodes)[node] = change * part;
    partial = {fabsf(change), part == 0.0f ? change : 0.0f};
  }
  const Pair sums = team_result(partial, 8);
  if (threadIdx.x == 0 && node < nodes) {
    partials[2 * flat_block()] = sums.x;
    partials[2 * flat_block() + 1] = sums.y;
  }
}
