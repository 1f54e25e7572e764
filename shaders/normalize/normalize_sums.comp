#version 460
// Rows of several pieces, first step: computes the sums of squares of each piece.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "length.glsl"
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstFloatSpan matrix;
  FloatSpan sums;  // three for each piece
  RowSplit split;
};

void main() {
  const Piece p = piece_of(split);
  ConstFloats row = ConstFloats(row_address(uvec2(matrix.data), p.row, split.columns));
  vec3 mine = vec3(0.0);
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) mine += squares(row.at[i]);
  const vec3 all = team_result(mine, split.lanes_log2);
  if (p.first < p.last && p.lane < 3) sums.data.at[3 * p.number + p.lane] = all[p.lane];
}
