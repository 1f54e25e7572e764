// to = from, four adjacent elements at a time if both are aligned to 128 bits.
#include "quads.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_copy(wye_span<const float> from, wye_span<float> to) {
  const Size quads = has_quads(from.data) && has_quads(to.data) ? to.size / 4 : 0;
  for (Size i = flat_thread(); i < quads; i += flat_threads())
    reinterpret_cast<Quad*>(to.data)[i] = reinterpret_cast<const Quad*>(from.data)[i];
  for (Size i = 4 * quads + flat_thread(); i < to.size; i += flat_threads()) to[i] = from[i];
}
