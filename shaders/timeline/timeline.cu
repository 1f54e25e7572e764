// Places evidence on a timeline: its importance fades with its distance from now. Elements have 16 bytes and
// are contiguous, but need not be aligned to 16 bytes. A warp's loads of their members access the same
// sectors.
#include "flat.cuh"
#include "placed.cuh"

struct Evidence {
  float timestamp;
  float importance;
  unsigned category;
  float relevance;
};

// Returns importance exp(-x) for x >= 0, infinite or NaN. Returns 0 for x > 87, even if the importance is
// infinite.
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
