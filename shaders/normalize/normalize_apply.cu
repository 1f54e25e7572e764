// Rows of several pieces, second step: scales each piece by the length of its whole row.
#include "rows.cuh"
#include "length.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_normalize_apply(wye_span<float> matrix, wye_span<const float> sums, RowSplit split) {
  const Piece p = piece_of(split);
  Squares mine{};
  for (unsigned k = p.lane; k < split.pieces; k += p.lanes) {
    const Size from = 3 * (p.row * split.pieces + k);
    mine = combine(mine, {sums[from], sums[from + 1], sums[from + 2]});
  }
  const Factors factors = to_unit(team_result(mine, split.lanes_log2));
  replace_elements(matrix.data + p.first, p, [&](float v) { return scaled(v, factors); });
}
