// Step 1: resets the counts of links and the summary.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_clear(wye_span<unsigned> degrees, wye_span<Summary> summary, unsigned nodes) {
  for (Size i = flat_thread(); i < degrees.size; i += flat_threads()) degrees[i] = 0;
  if (flat_thread() == 0) summary[0] = {0, 0.0f, nodes == 0 ? 1u : 0u, 0};
}
