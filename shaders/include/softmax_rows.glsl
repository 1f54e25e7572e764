// The numbers of an invocation's share of a piece. With SUBGROUPS, it loads four of them before it uses the first.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "exponents.glsl"
#include "team.glsl"

#ifdef SUBGROUPS
float ahead[4];

// Loads numbers i, i + lanes, i + 2 lanes and i + 3 lanes. Numbers beyond the piece repeat the last.
void load_four(uvec2 row, Piece p, uint i) {
  ConstFloats numbers = ConstFloats(row);
  for (uint j = 0; j < 4; ++j) ahead[j] = numbers.at[min(i + j * p.lanes, p.last - 1)];
}

// Returns the sum of the exponentials of this invocation's numbers times `scale`.
vec2 sum_of_share(uvec2 row, Piece p, float scale) {
  vec2 mine = nothing;
  for (uint i = p.first + p.lane; i < p.last; i += 4 * p.lanes) {
    load_four(row, p, i);
    for (uint j = 0; j < 4; ++j)
      if (i + j * p.lanes < p.last) mine = absorb(mine, scaled(ahead[j], scale));
  }
  return mine;
}

// Replaces this invocation's numbers by weights. If `loaded`, the piece has at most four, which were loaded last.
void write_weights(uvec2 row, Piece p, float scale, vec2 all, bool loaded) {
  const float share = share_of(all);
  Floats weights = Floats(row);
  for (uint i = p.first + p.lane; i < p.last; i += 4 * p.lanes) {
    if (!loaded) load_four(row, p, i);
    for (uint j = 0; j < 4; ++j)
      if (i + j * p.lanes < p.last)
        weights.at[i + j * p.lanes] = exponential(scaled(ahead[j], scale) - all.x) * share;
  }
}
#else
vec2 sum_of_share(uvec2 row, Piece p, float scale) {
  ConstFloats numbers = ConstFloats(row);
  vec2 mine = nothing;
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes) mine = absorb(mine, scaled(numbers.at[i], scale));
  return mine;
}

void write_weights(uvec2 row, Piece p, float scale, vec2 all, bool loaded) {
  const float share = share_of(all);
  Floats weights = Floats(row);
  for (uint i = p.first + p.lane; i < p.last; i += p.lanes)
    weights.at[i] = exponential(scaled(weights.at[i], scale) - all.x) * share;
}
#endif
