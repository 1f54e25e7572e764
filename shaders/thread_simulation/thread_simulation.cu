// A simulation of threads that fork, in three steps: resets the depths, follows the chains, and finds the deepest. A thread of the
// device follows one chain.
#include "flat.cuh"

struct Shape {
  unsigned limit_low, limit_high;
  unsigned max_depth;
  unsigned batch;  // chains of one block, at most 256
  unsigned part;
};
constexpr unsigned reset_depths = 0, follow_chains = 1;
constexpr unsigned end_one = 0, end_limit = 1, end_max_depth = 2;

struct Last {
  Size value;
  unsigned depth;
  unsigned end;
};
struct Depth {
  unsigned chains;
  unsigned first;
};
struct Summary {
  Size forks;
  unsigned deepest;
  unsigned thread;
};

__device__ Last last_of(Size value, Size limit, unsigned max_depth) {
  for (unsigned depth = 0;; ++depth) {
    if (value <= 1) return {value, depth, end_one};
    if (value > limit) return {value, depth, end_limit};
    if (depth == max_depth) return {value, depth, end_max_depth};
    value = (value & 1) == 0 ? value >> 1 : 3 * value + 1;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    wye_thread_simulation(wye_span<Last> last, wye_span<Depth> depths, wye_span<Summary> summary, Shape shape) {
  const Size item = flat_thread();
  if (shape.part == reset_depths) {
    if (item <= shape.max_depth) depths[item] = {0, 0xffffffffu};
  } else if (shape.part == follow_chains) {
    const Size chain = flat_block() * shape.batch + threadIdx.x;
    if (threadIdx.x >= shape.batch || chain >= last.size) return;
    const Last end = last_of(chain, shape.limit_low | Size(shape.limit_high) << 32, shape.max_depth);
    last[chain] = end;
    atomicAdd(&depths[end.depth].chains, 1u);
    atomicMin(&depths[end.depth].first, unsigned(chain));
  } else if (item == 0) {
    Summary s = {0, 0, 0};
    for (unsigned depth = 0; depth <= shape.max_depth; ++depth) {
      const Depth d = depths[depth];
      if (d.chains == 0) continue;
      s.forks += Size(d.chains) * depth;
      s.deepest = depth;
      s.thread = d.first;
    }
    summary[0] = s;
  }
}
