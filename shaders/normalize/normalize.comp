#version 460
// Normalizes rows of one piece to length 1.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "length.glsl"
#include "team.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan matrix;
  RowSplit split;
};

void main() {
  const Piece p = piece_of(split);
  Floats row = Floats(row_address(uvec2(matrix.data), p.row, split.columns));
  vec3 sums = vec3(0.0);
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) sums += squares(row.at[i]);
  const vec2 factors = to_unit(team_result(sums, split.lanes_log2));
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) {
    precise const float scaled = row.at[i] * factors.x;
    row.at[i] = scaled * factors.y;
  }
}
