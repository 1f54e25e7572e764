// Follows the trajectory of one number per thread. An iteration takes the halvings up to the next odd value, at most 63, and
// the step from it.
#include "collatz.cuh"

struct Start {
  unsigned first_0, first_1, first_2, first_3;  // the words of the first number
  unsigned step_limit;
};

// Returns whether 3n + 1 has 128 bits, and replaces n by it.
__device__ bool triple_plus_one(Wide& n) {
  constexpr Size most = 0x5555555555555554;  // whose triple plus 1 has 64 bits
  if (n.high == 0 && n.low <= most) {
    n.low = 3 * n.low + 1;
    return true;
  }
  if (n.high > most + 1 || (n.high == most + 1 && n.low > most)) return false;
  const Size triple = 3 * n.low, low = triple + 1;
  n.high = 3 * n.high + __umul64hi(n.low, 3) + (low == 0 ? 1 : 0);
  n.low = low;
  return true;
}

__device__ CollatzResult trajectory(Wide n, unsigned step_limit) {
  CollatzResult r = {n, 0, end_one};
  if (n.high == 0 && n.low <= 1) return r;
  for (;;) {
    const unsigned halvings = n.low != 0 ? unsigned(__ffsll((long long)n.low) - 1) : 63u;
    if (halvings > step_limit - r.steps) {
      r.steps = step_limit;
      r.end = end_step_limit;
      return r;
    }
    n.low = n.low >> halvings | (n.high << (63 - halvings)) << 1;
    n.high >>= halvings;
    r.steps += halvings;
    if ((n.low & 1) == 0) continue;
    if (n.low == 1 && n.high == 0) return r;
    if (r.steps == step_limit) {
      r.end = end_step_limit;
      return r;
    }
    if (!triple_plus_one(n)) {
      r.end = end_overflow;
      return r;
    }
    ++r.steps;
    if (is_greater(n, r.peak)) r.peak = n;
  }
}

extern "C" __global__ void __launch_bounds__(256) wye_collatz(wye_span<CollatzResult> results, Start start) {
  const Wide first = {start.first_0 | Size(start.first_1) << 32, start.first_2 | Size(start.first_3) << 32};
  for (Size i = flat_thread(); i < results.size; i += flat_threads()) {
    const Size low = first.low + i;
    results[i] = trajectory({low, first.high + (low < i ? 1 : 0)}, start.step_limit);
  }
}
