#version 460
// Replaces rows of one piece by the softmax of the row times a factor.
#include "softmax_rows.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan matrix;
  RowSplit split;
  float scale;
};

void main() {
  const Piece p = piece_of(split);
  const uvec2 row = row_address(uvec2(matrix.data), p.row, split.columns);
  const vec2 all = team_result(sum_of_share(row, p, scale), split.lanes_log2);
  write_weights(row, p, scale, all, p.last <= 4 * p.lanes);
}
