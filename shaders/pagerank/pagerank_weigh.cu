// With weights, step 3: adds up the weights of the links that leave each node. Additions carry into the next
// word, so the sums do not depend on the order of the links.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_weigh(wye_span<const float> weights, wye_span<const unsigned> sources, wye_span<unsigned> degrees,
                       unsigned nodes) {
  for (Size i = flat_thread(); i < sources.size; i += flat_threads()) {
    const unsigned source = sources[i];
    if (source >= nodes) continue;
    const Below weight = weight_below(degrees[source], weight_of(weights[i]));
    unsigned high = 0, low = 0;
    if (weight.shift < 32) {
      high = weight.top >> weight.shift;
      if (weight.shift > 0) low = weight.top << (32 - weight.shift);
    } else if (weight.shift < 64) {
      low = weight.top >> (weight.shift - 32);
    }
    unsigned* const sum = degrees.data + source;
    if (low != 0) {
      const unsigned before = atomicAdd(sum + Size(nodes), low);
      if (before + low < before) ++high;
    }
    if (high != 0) {
      const unsigned before = atomicAdd(sum + 2 * Size(nodes), high);
      if (before + high < before) atomicAdd(sum + 3 * Size(nodes), 1u);
    }
  }
}
