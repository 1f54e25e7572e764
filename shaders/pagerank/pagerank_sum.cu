// One iteration, last: the change and the dangling rank of all nodes; whether that is the end. One block.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_sum(wye_span<float> partials, wye_span<Summary> summary, unsigned groups, unsigned counts,
                     float tolerance) {
  if (summary[0].converged != 0) return;
  Pair mine{};
  for (unsigned i = threadIdx.x; i < groups; i += 256)
    mine = combine(mine, Pair{partials[2 * Size(i)], partials[2 * Size(i) + 1]});
  const Pair all = team_result(mine, 8);
  if (threadIdx.x != 0) return;
  partials[2 * Size(groups)] = all.y;
  if (counts == 0) return;  // the start, which is no iteration
  Summary& s = summary[0];
  s.iterations += 1;
  s.residual = all.x;
  if (all.x <= tolerance) s.converged = 1;
}
