// Normalizes rows of one piece to length 1.
#include "rows.cuh"
#include "length.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_normalize(wye_span<float> matrix, RowSplit split) {
  const Piece p = piece_of(split);
  float* const row = matrix.data + p.first;
  Squares mine{};
  each_element(row, p, [&](float v) { add_square(mine, v); });
  const Factors factors = to_unit(team_result(mine, split.lanes_log2));
  replace_elements(row, p, [&](float v) { return scaled(v, factors); });
}
