// One iteration, last: adds up |change| of all nodes, and the changes of those without links, which all nodes share.
// Decides whether the ranks have converged. One block.
#include "pagerank.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_pagerank_sum(wye_span<float> partials, wye_span<Summary> summary, unsigned groups, unsigned counts,
                     float tolerance) {
  if (summary[0].converged != 0) return;
  Sum changed, dangling;
  for (unsigned i = threadIdx.x; i < groups; i += 256) {
    changed.add(partials[2 * Size(i)]);
    dangling.add(partials[2 * Size(i) + 1]);
  }
  const Pair all = team_result(Pair{changed.value, dangling.value}, 8);
  if (threadIdx.x != 0) return;
  if (counts == 2) {  // the preferences
    partials[2 * Size(groups) + 1] = all.x;
    return;
  }
  // The first change is damping (sum of shares + dangling rank / nodes) + (1 - damping) / nodes - 1 / nodes.
  partials[2 * Size(groups)] = counts == 0 ? all.y - 1.0f : all.y;
  if (counts == 0) return;  // the start, which is not an iteration
  Summary& s = summary[0];
  s.iterations += 1;
  s.residual = all.x;
  if (all.x <= tolerance) s.converged = 1;
}
