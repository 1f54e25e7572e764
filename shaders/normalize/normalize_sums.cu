// Rows of several pieces, first step: computes the sums of squares of each piece.
#include "rows.cuh"
#include "length.cuh"

extern "C" __global__ void __launch_bounds__(256)
    wye_normalize_sums(wye_span<const float> matrix, wye_span<float> sums, RowSplit split) {
  const Piece p = piece_of(split);
  Squares mine{};
  each_element(matrix.data + p.first, p, [&](float v) { add_square(mine, v); });
  const Squares all = team_result(mine, split.lanes_log2);
  if (p.size == 0 || p.lane != 0) return;
  sums[3 * p.number] = all.plain;
  sums[3 * p.number + 1] = all.up;
  sums[3 * p.number + 2] = all.down;
}
