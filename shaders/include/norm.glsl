// The norm of each piece of rows. All norms are computed together, and `norm` selects one at the end. An invocation adds at
// most 64 terms to each of its four sums, which bounds the rounding error.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "numbers.glsl"
#include "length.glsl"
#undef PARTIAL
#define PARTIAL Norms

struct Norms {
  vec3 squares;
  float sum;   // of absolute values
  float most;  // largest absolute value
};

// Returns the larger of two numbers that are not negative. NaN is the largest.
float larger(float a, float b) { return uintBitsToFloat(max(floatBitsToUint(a), floatBitsToUint(b))); }

Norms combine(Norms a, Norms b) {
  return Norms(a.squares + b.squares, a.sum + b.sum, larger(a.most, b.most));
}

Norms norms_of(float v) {
  const float size = uintBitsToFloat(floatBitsToUint(v) & 0x7fffffffu);
  return Norms(squares(v), size, size);
}

// `norm` is a `workloads::Norm`.
float selected(Norms norms, uint norm) {
  return norm == 0 ? norms.sum : norm == 1 ? length_of(norms.squares) : norms.most;
}

#ifdef SUBGROUPS
Norms exchanged(Norms norms, uint reach) {
  return Norms(exchanged(norms.squares, reach), exchanged(norms.sum, reach), exchanged(norms.most, reach));
}
#endif
#include "team.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  NumberSpan results;  // one for each piece
  RowSplit split;
  uint norm;
};

void main() {
  const Piece p = piece_of(split);
  PackedLine xs = line_of(uvec2(x.data), plus(product(p.row, split.columns), uvec2(p.first, 0)));
  const Norms none = Norms(vec3(0.0), 0.0, 0.0);
  Norms parts[4] = Norms[](none, none, none, none);
  const uint size = p.last - p.first;
  uint i = p.lane;
#ifdef SUBGROUPS
  for (; i + 7 * p.lanes < size; i += 8 * p.lanes) {  // eight loads in flight
    float terms[8];
    for (uint j = 0; j < 8; ++j) terms[j] = term_at(xs, i + j * p.lanes);
    for (uint j = 0; j < 8; ++j) parts[j & 3] = combine(parts[j & 3], norms_of(terms[j]));
  }
#endif
  for (; i < size; i += 4 * p.lanes)
    for (uint j = 0; j < 4; ++j) {
      const uint k = i + j * p.lanes;
      if (k < size) parts[j] = combine(parts[j], norms_of(term_at(xs, k)));
    }
  const Norms mine = combine(combine(parts[0], parts[1]), combine(parts[2], parts[3]));
  const Norms all = team_result(mine, split.lanes_log2);
  const uvec2 number = uvec2(p.number, 0);
  if (p.lane == 0 && is_less(number, results.size))
    write_word(uvec2(results.data), number, floatBitsToUint(selected(all, norm)));
}
