#version 460
// Replaces rows of one piece by the softmax of the row times a factor.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "exponents.glsl"
#include "team.glsl"

layout(push_constant) uniform Arguments {
  FloatSpan matrix;
  RowSplit split;
  float scale;
};

void main() {
  const Piece p = piece_of(split);
  Floats row = Floats(row_address(uvec2(matrix.data), p.row, split.columns));
  vec2 mine = nothing;
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) mine = absorb(mine, scaled(row.at[i], scale));
  const vec2 all = team_result(mine, split.lanes_log2);
  const float share = share_of(all);
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes)
    row.at[i] = exponential(scaled(row.at[i], scale) - all.x) * share;
}
