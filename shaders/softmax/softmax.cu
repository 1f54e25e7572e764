// Replaces rows of one piece by the softmax of the row times a factor.
#include "rows.cuh"
#include "exponents.cuh"

extern "C" __global__ void __launch_bounds__(256) wye_softmax(wye_span<float> matrix, RowSplit split, float scale) {
  const Piece p = piece_of(split);
  float* const row = matrix.data + p.first;
  ExponentSum mine = no_exponents;
  each_element(row, p, [&](float v) { mine = absorb(mine, scaled(v, scale)); });
  const ExponentSum all = team_result(mine, split.lanes_log2);
  const float share = share_of(all);
  replace_elements(row, p, [&](float v) { return exponential(scaled(v, scale) - all.most) * share; });
}
