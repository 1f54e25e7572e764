#version 460
// Rows of several pieces, second step: computes the weights of each piece with the sum of its whole row.
#include "softmax_rows.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan matrix;
  ConstFloatSpan sums;
  RowSplit split;
  float scale;
};

void main() {
  const Piece p = piece_of(split);
  vec2 mine = nothing;
  for (uint k = p.lane; k < split.pieces; k += p.lanes) {
    const uint from = 2 * (p.row * split.pieces + k);
    mine = combine(mine, vec2(sums.data.at[from], sums.data.at[from + 1]));
  }
  const vec2 all = team_result(mine, split.lanes_log2);
  write_weights(row_address(uvec2(matrix.data), p.row, split.columns), p, scale, all, false);
}
