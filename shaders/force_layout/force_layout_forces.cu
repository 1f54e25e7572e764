// Computes the force on each node. A block has 32 nodes; eight adjacent threads share a node. Tiles of 256 bodies are in shared
// memory. The sums of tiles are added up, which bounds the rounding error.
#include "force_layout.cuh"

constexpr unsigned lanes_log2 = 3, lanes = 1u << lanes_log2, tile = 256;
constexpr float near_distance = 0.0078125f;            // 2^-7
constexpr float near_square = 0.00006103515625f;       // 2^-14
constexpr float same_square = 9.094947017729282e-13f;  // 2^-40

struct Body {
  float x, y, mass;
};

// Returns the sum of the pulls of every `lanes`-th of the links [first, last).
__device__ Pair pull_of(const Body& at, const unsigned* targets, wye_span<const float> weights, const float* bodies,
                        unsigned nodes, Size first, Size last) {
  Pair sum = {0.0f, 0.0f};
  for (Size k = first; k < last; k += lanes) {
    const unsigned j = targets[k];
    if (j >= nodes || bodies[2 * nodes + j] == 0.0f) continue;
    const unsigned bits = weights.size != 0 ? __float_as_uint(weights[k]) : 0x3f800000u;
    const float weight = bits < 0x7f800000u ? __uint_as_float(bits) : 0.0f;
    sum.x = fmaf(weight, bodies[j] - at.x, sum.x);
    sum.y = fmaf(weight, bodies[nodes + j] - at.y, sum.y);
  }
  return sum;
}

extern "C" __global__ void __launch_bounds__(256)
    wye_force_layout_forces(wye_span<const unsigned> offsets, wye_span<const unsigned> targets, wye_span<const float> weights,
                            wye_span<const float> bodies, wye_span<float> forces, float repulsion, float gravity,
                            unsigned strong) {
  __shared__ Body others[tile];
  const unsigned nodes = unsigned(offsets.size - 1), lane = threadIdx.x & (lanes - 1);
  const unsigned node = blockIdx.x * (tile / lanes) + (threadIdx.x >> lanes_log2);
  const bool exists = node < nodes;
  Body at = {0.0f, 0.0f, 0.0f};
  if (exists) at = {bodies[node], bodies[nodes + node], bodies[2 * nodes + node]};

  Pair repulsions = {0.0f, 0.0f};
  for (unsigned first = 0; first < nodes; first += tile) {
    __syncthreads();
    const unsigned other = first + threadIdx.x;
    Body body = {0.0f, 0.0f, 0.0f};
    if (other < nodes) body = {bodies[other], bodies[nodes + other], bodies[2 * nodes + other]};
    others[threadIdx.x] = body;
    __syncthreads();
    Pair sum = {0.0f, 0.0f};
#pragma unroll 8
    for (unsigned i = lane; i < tile; i += lanes) {
      const Body b = others[i];
      float x = at.x - b.x;
      const float y = at.y - b.y, square = fmaf(x, x, y * y);
      if (square < same_square) x = node > first + i ? near_distance : node < first + i ? -near_distance : 0.0f;
      const float factor = __fdividef(b.mass, fmaxf(square, near_square));
      sum.x = fmaf(x, factor, sum.x);
      sum.y = fmaf(y, factor, sum.y);
    }
    repulsions = combine(repulsions, sum);
  }

  Pair pulls = {0.0f, 0.0f};
  if (exists) {
    const Links links = links_of(offsets, targets.size, node);
    for (Size first = links.first; first < links.last; first += 1024)
      pulls = combine(pulls, pull_of(at, targets.data, weights, bodies.data, nodes, first + lane,
                                     min(first + 1024, links.last)));
  }
  repulsions = team_result(repulsions, lanes_log2);
  pulls = team_result(pulls, lanes_log2);
  if (lane != 0 || !exists) return;
  const float distance = strong != 0 ? 1.0f : fmaxf(size_of(at.x, at.y), 9.5367431640625e-7f);  // 2^-20
  const float strength = repulsion * at.mass, pull = gravity * at.mass / distance;
  const float x = fmaf(strength, repulsions.x, pulls.x) - at.x * pull;
  const float y = fmaf(strength, repulsions.y, pulls.y) - at.y * pull;
  const bool counts = at.mass > 0.0f && is_force(x) && is_force(y);
  forces[node] = counts ? x : 0.0f;
  forces[nodes + node] = counts ? y : 0.0f;
}
