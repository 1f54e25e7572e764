// y = a x + y. A thread processes four adjacent elements at a time. If both vectors are aligned to 128 bits,
// it uses one load and one store for them.
#include "quads.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_axpy(float a, wye_span<const float> x, wye_span<float> y) {
  const Size quads = has_quads(x.data) && has_quads(y.data) ? y.size / 4 : 0;
  const Quad* const from = reinterpret_cast<const Quad*>(x.data);
  Quad* const to = reinterpret_cast<Quad*>(y.data);
  for (Size i = flat_thread(); i < quads; i += flat_threads()) {
    const Quad u = from[i], v = to[i];
    to[i] = {fmaf(a, u.x, v.x), fmaf(a, u.y, v.y), fmaf(a, u.z, v.z), fmaf(a, u.w, v.w)};
  }
  for (Size i = 4 * quads + flat_thread(); i < y.size; i += flat_threads()) y[i] = fmaf(a, x[i], y[i]);
}
