// Moves each node by its force and keeps the force for the next iteration; when a job begins, sets the bodies only.
#include "force_layout.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_force_layout_move(wye_span<const unsigned> offsets, wye_span<const unsigned> targets, wye_span<float> positions,
                          wye_span<float> bodies, wye_span<const float> forces, wye_span<float> state, unsigned begins) {
  const Size item = flat_thread();
  const unsigned nodes = unsigned(offsets.size - 1), node = unsigned(item);
  if (item >= nodes) return;
  float x = positions[2 * node], y = positions[2 * node + 1], mass;
  if (begins != 0) {
    const Links links = links_of(offsets, targets.size, node);
    mass = 1.0f + float(links.last - links.first);
  } else {
    mass = bodies[2 * nodes + node];
    const Pair force = {forces[node], forces[nodes + node]}, before = force_before(state, nodes, node);
    const float size = size_of(force.x, force.y), swing = size_of(force.x - before.x, force.y - before.y);
    const float speed = state[2 * nodes];
    state[node] = force.x;
    state[nodes + node] = force.y;
    if (mass > 0.0f && size > 0.0f) {
      const float factor = fminf(0.1f * speed / fmaf(speed, sqrtf(swing), 1.0f), 10.0f / size);
      positions[2 * node] = x = fmaf(force.x, factor, x);
      positions[2 * node + 1] = y = fmaf(force.y, factor, y);
    }
  }
  const bool exists = is_coordinate(x) && is_coordinate(y);
  bodies[node] = exists ? x : 0.0f;
  bodies[nodes + node] = exists ? y : 0.0f;
  bodies[2 * nodes + node] = exists ? mass : 0.0f;
}
