// Step 3, with weights 4: gives each node the rank 1 / nodes, or the share of its preference.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_start(wye_span<const unsigned> degrees, wye_span<float> shares, wye_span<float> ranks,
                       wye_span<float> partials, unsigned nodes, wye_span<const float> preferences) {
  const Size node = flat_thread();
  const float total = preferences.size != 0 ? partials[2 * ((Size(nodes) + nodes_per_group - 1) / nodes_per_group) + 1] : 0.0f;
  float rank = 1.0f / float(nodes);
  if (total > 0.0f && node < nodes) rank = preference(preferences[node]) / total;
  float dangling = 0.0f;
  if (node < nodes) {
    const unsigned degree = degrees[node];
    const float part = degree == 0 ? 0.0f : has_weights(shares.size, nodes) ? 1.0f : 1.0f / float(degree);
    if (degree == 0) dangling = rank;
    ranks[node] = rank;
    part_of(shares.data, 0, nodes)[node] = rank * part;
    part_of(shares.data, 2, nodes)[node] = part;
    part_of(shares.data, 3, nodes)[node] = 0.0f;
    if (has_preferences(shares.size, nodes)) part_of(shares.data, 4, nodes)[node] = rank;
  } else if (node == nodes) {
    part_of(shares.data, 0, nodes)[node] = 0.0f;
    part_of(shares.data, 1, nodes)[node] = 0.0f;
  }
  const float sum = team_result(dangling, 8);
  if (threadIdx.x == 0 && node < nodes) {
    partials[2 * flat_block()] = 0.0f;
    partials[2 * flat_block() + 1] = sum;
  }
}
