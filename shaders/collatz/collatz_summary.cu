// Finds records and sums of 65,536 results, or of as many summaries, per block. Of equal records the first place counts, so
// any order of the comparisons has the same result.
#include "collatz.cuh"

constexpr unsigned stretch = 65536;

struct Summary {
  Size finished, unfinished, overflowed, steps, most_steps, longest, highest;
  Wide peak;
};

__device__ Summary summary_of(const CollatzResult& r, Size place) {
  Summary s = {0, 0, 0, 0, 0, 0, 0, {0, 0}};
  if (r.end == end_overflow)
    s.overflowed = 1;
  else if (r.end == end_step_limit)
    s.unfinished = 1;
  else
    s = {1, 0, 0, r.steps, r.steps, place, place, r.peak};
  return s;
}

__device__ void combine(Summary& a, const Summary& b) {
  if (b.finished != 0) {
    const bool none = a.finished == 0;
    if (none || b.most_steps > a.most_steps || (b.most_steps == a.most_steps && b.longest < a.longest)) {
      a.most_steps = b.most_steps;
      a.longest = b.longest;
    }
    const bool equal = b.peak.low == a.peak.low && b.peak.high == a.peak.high;
    if (none || is_greater(b.peak, a.peak) || (equal && b.highest < a.highest)) {
      a.peak = b.peak;
      a.highest = b.highest;
    }
  }
  a.finished += b.finished;
  a.unfinished += b.unfinished;
  a.overflowed += b.overflowed;
  a.steps += b.steps;
}

extern "C" __global__ void __launch_bounds__(256)
    wye_collatz_summary(wye_span<const CollatzResult> results, wye_span<const Summary> parts,
                        wye_span<Summary> sums) {
  __shared__ Summary of_others[128];
  const unsigned me = threadIdx.x;
  const Size group = flat_block(), first = group * stretch;
  const Size count = parts.size != 0 ? parts.size : results.size;
  Summary mine = {0, 0, 0, 0, 0, 0, 0, {0, 0}};
  for (Size i = first + me; i < min(count, first + stretch); i += 256) {
    if (parts.size != 0)
      combine(mine, parts[i]);
    else
      combine(mine, summary_of(results[i], i));
  }
  for (unsigned reach = 128; reach > 0; reach >>= 1) {
    if (me >= reach && me < 2 * reach) of_others[me - reach] = mine;
    __syncthreads();
    if (me < reach) combine(mine, of_others[me]);
    __syncthreads();
  }
  if (me == 0 && group < sums.size) sums[group] = mine;
}
