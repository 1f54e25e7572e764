#version 460
// Rows of several pieces, first step: computes the largest number of each piece and the sum of its
// exponentials.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "exponents.glsl"
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan matrix;
  FloatSpan sums;  // two for each piece
  RowSplit split;
  float scale;
};

void main() {
  const Piece p = piece_of(split);
  ConstFloats row = ConstFloats(row_address(uvec2(matrix.data), p.row, split.columns));
  vec2 mine = nothing;
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) mine = absorb(mine, scaled(row.at[i], scale));
  const vec2 all = team_result(mine, split.lanes_log2);
  if (p.first < p.last && p.lane < 2) sums.data.at[2 * p.number + p.lane] = all[p.lane];
}
