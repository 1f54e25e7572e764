// With weights, step 2: finds the largest weight of the links that leave each node.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_largest(wye_span<const float> weights, wye_span<const unsigned> sources, wye_span<unsigned> degrees,
                         wye_span<Summary> summary, unsigned nodes) {
  for (Size i = flat_thread(); i < sources.size; i += flat_threads()) {
    const unsigned source = sources[i];
    if (source < nodes)
      atomicMax(&degrees[source], weight_of(weights[i]));
    else
      atomicAdd(&summary[0].ignored_links, 1u);
  }
}
