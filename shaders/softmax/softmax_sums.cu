// Rows of several pieces, first step: computes the largest number of each piece and the sum of its
// exponentials.
#include "rows.cuh"
#include "exponents.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_softmax_sums(wye_span<const float> matrix, wye_span<float> sums, RowSplit split, float scale) {
  const Piece p = piece_of(split);
  ExponentSum mine = no_exponents;
  each_element(matrix.data + p.first, p, [&](float v) { mine = absorb(mine, scaled(v, scale)); });
  const ExponentSum all = team_result(mine, split.lanes_log2);
  if (p.size == 0 || p.lane != 0) return;
  sums[2 * p.number] = all.most;
  sums[2 * p.number + 1] = all.sum;
}
