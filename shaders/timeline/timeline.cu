// Places evidence on a timeline: its importance fades with its distance from now. Elements are 16 bytes, which lie side by side
// but need not begin at a multiple of that: a warp's loads of their members come from the same sectors.
#include "flat.cuh"

struct Evidence {
  float timestamp;
  float importance;
  unsigned category;
  float relevance;
};
struct Placed {
  float position;
  float importance;
  float relevance;
  unsigned category;
};

// importance exp(-x) for x >= 0, infinite or NaN; 0 for x > 87, also of an infinite importance.
__device__ float faded(float importance, float x) {
  return x > 87.0f && importance == importance ? 0.0f : importance * expf(-x);
}

extern "C" __global__ void __launch_bounds__(256)
    wye_timeline(wye_span<const Evidence> evidence, wye_span<Placed> points, float now, float decay) {
  for (Size i = flat_thread(); i < points.size; i += flat_threads()) {
    const Evidence e = evidence[i];
    const float importance = faded(e.importance, decay * fabsf(now - e.timestamp));
    points[i] = {e.timestamp, importance, e.relevance, e.category};
  }
}
