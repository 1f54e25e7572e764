// Rows of several pieces, second step: computes the weights of each piece with the sum of its whole row.
#include "rows.cuh"
#include "exponents.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_softmax_apply(wye_span<float> matrix, wye_span<const float> sums, RowSplit split, float scale) {
  const Piece p = piece_of(split);
  ExponentSum mine = no_exponents;
  for (unsigned k = p.lane; k < split.pieces; k += p.lanes) {
    const Size from = 2 * (p.row * split.pieces + k);
    mine = combine(mine, {sums[from], sums[from + 1]});
  }
  const ExponentSum all = team_result(mine, split.lanes_log2);
  const float share = share_of(all);
  replace_elements(matrix.data + p.first, p,
                   [&](float v) { return exponential(scaled(v, scale) - all.most) * share; });
}
