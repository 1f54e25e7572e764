#version 460
// Rows of several pieces, second step: computes the weights of each piece with the sum of its whole row.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "exponents.glsl"
#include "team.glsl"

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
  const float share = share_of(all);
  Floats row = Floats(row_address(uvec2(matrix.data), p.row, split.columns));
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes)
    row.at[i] = exponential(scaled(row.at[i], scale) - all.x) * share;
}
