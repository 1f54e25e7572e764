#version 460
// Rows of several pieces, first step: computes the largest number of each piece and the sum of its
// exponentials.
#include "softmax_rows.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan matrix;
  FloatSpan sums;  // two for each piece
  RowSplit split;
  float scale;
};

void main() {
  const Piece p = piece_of(split);
  const uvec2 row = row_address(uvec2(matrix.data), p.row, split.columns);
  const vec2 all = team_result(sum_of_share(row, p, scale), split.lanes_log2);
  if (p.first < p.last && p.lane < 2) sums.data.at[2 * p.number + p.lane] = all[p.lane];
}
