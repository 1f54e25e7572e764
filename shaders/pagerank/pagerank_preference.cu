// Personalization, first: adds up the preferences of each 256 nodes.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_preference(wye_span<const float> preferences, wye_span<float> partials, unsigned nodes) {
  const Size node = flat_thread();
  const float sum = team_result(node < nodes ? preference(preferences[node]) : 0.0f, 8);
  if (threadIdx.x == 0 && node < nodes) {
    partials[2 * flat_block()] = sum;
    partials[2 * flat_block() + 1] = 0.0f;
  }
}
