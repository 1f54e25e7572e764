#pragma once
// result = silu(gate) * up.
#include "exponential.cuh"
#include "fours.cuh"
#include "rows.cuh"

// Returns v / (1 + exp(-v)), without an exponential that overflows; -0 below -87.
__device__ float silu(float v) {
  if (v < -87.0f) return -0.0f;
  const float e = exponential(-fabsf(v));
  return v * ((v < 0.0f ? e : 1.0f) / (1.0f + e));
}

template <class T>
__device__ void multiply_silu(wye_span<const typename T::Number> gate, wye_span<const typename T::Number> up,
                              wye_span<typename T::Number> result, RowSplit split) {
  typedef typename T::Number Number;
  const Piece p = piece_of(split);
  const Number *const gates = gate.data + p.first, *const ups = up.data + p.first;
  Number* const to = result.data + p.first;
  const bool together = has_fours<T>(gates) && has_fours<T>(ups) && has_fours<T>(to);
  for (unsigned i = p.lane; 4 * i < p.size; i += p.lanes) {
    const Quad g = four_at<T>(gates, i, p.size, together), u = four_at<T>(ups, i, p.size, together);
    write_four<T>(to, i, p.size, together, {silu(g.x) * u.x, silu(g.y) * u.y, silu(g.z) * u.z, silu(g.w) * u.w});
  }
}
