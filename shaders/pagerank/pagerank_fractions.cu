// With weights, step 5: divides the weight of each link by the sum of the weights of its source.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_fractions(wye_span<const float> weights, wye_span<const unsigned> sources,
                           wye_span<const unsigned> degrees, wye_span<float> shares, unsigned nodes) {
  float* const fractions = part_of(shares.data, 5, nodes);
  for (Size i = flat_thread(); i < sources.size; i += flat_threads()) {
    const unsigned source = sources[i];
    float fraction = 0.0f;
    if (source < nodes && degrees[source] != 0) {
      const unsigned* const words = degrees.data + source;
      const float low = float(words[Size(nodes)]), middle = float(words[2 * Size(nodes)]);
      const float sum = float(words[3 * Size(nodes)]) * 4294967296.0f + (middle + low / 4294967296.0f);
      const Below weight = weight_below(degrees[source], weight_of(weights[i]));
      if (weight.shift < 126) fraction = float(weight.top) * __uint_as_float((127 - weight.shift) << 23) / sum;
    }
    fractions[i] = fraction;
  }
}
