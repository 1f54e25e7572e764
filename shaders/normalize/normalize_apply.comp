#version 460
// Rows of several pieces, second step: scales each piece by the length of its whole row.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "length.glsl"
#include "team.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan matrix;
  ConstFloatSpan sums;
  RowSplit split;
};

void main() {
  const Piece p = piece_of(split);
  vec3 mine = vec3(0.0);
  for (uint k = p.lane; k < split.pieces; k += p.lanes) {
    const uint from = 3 * (p.row * split.pieces + k);
    mine += vec3(sums.data.at[from], sums.data.at[from + 1], sums.data.at[from + 2]);
  }
  const vec2 factors = to_unit(team_result(mine, split.lanes_log2));
  Floats row = Floats(row_address(uvec2(matrix.data), p.row, split.columns));
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) {
    precise const float scaled = row.at[i] * factors.x;
    row.at[i] = scaled * factors.y;
  }
}
