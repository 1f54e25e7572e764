// Computes the swinging and the traction of all nodes and the speed that follows. One block.
#include "force_layout.cuh"

constexpr float fastest = 1048576.0f;  // 2^20

extern "C" __global__ void __launch_bounds__(256)
    wye_force_layout_speed(wye_span<const float> bodies, wye_span<const float> forces, wye_span<float> state,
                           float tolerance) {
  const unsigned nodes = unsigned(forces.size / 2);
  Pair sums = {0.0f, 0.0f};
  for (unsigned i = threadIdx.x; i < nodes; i += 256) {
    const Pair force = {forces[i], forces[nodes + i]}, before = force_before(state, nodes, i);
    const float mass = bodies[2 * nodes + i];
    sums.x = fmaf(mass, size_of(force.x - before.x, force.y - before.y), sums.x);
    sums.y = fmaf(mass, 0.5f * size_of(force.x + before.x, force.y + before.y), sums.y);
  }
  const Pair all = team_result(sums, 8);
  if (threadIdx.x != 0) return;
  const float before = state[2 * nodes];
  float speed = before > 0.0f && before <= fastest ? fminf(1.5f * before, fastest) : all.x > 0.0f ? fastest : 0.0f;
  if (all.x > 0.0f) speed = fminf(tolerance * all.y / all.x, speed);
  state[2 * nodes] = speed;
  state[2 * nodes + 1] = all.x;
  state[2 * nodes + 2] = all.y;
}
