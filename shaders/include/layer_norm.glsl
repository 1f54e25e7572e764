// Rows of x, or of x + residual, divided by their root mean square or, if centered, by their standard deviation, times a
// weight. Their deviations are from the mean, or from zero. The sum of the deviations corrects the mean for its rounding. An
// invocation adds at most 64 terms to each of its four sums. Elements are read in the same order at any address.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "lines.glsl"

#define PARTIAL vec2
vec2 combine(vec2 a, vec2 b) { return a + b; }
#include "team.glsl"

// Rows of one piece take one call, whose phase is 0. Longer rows take a call of phase 1 if centered, then of phases 2 and 3.
// Phase 1 writes the sum of each piece, phase 2 the sum of its deviations and that of their squares.
struct NormStep {
  float epsilon;
  uint centered;
  uint phase;
};

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  NumberSpan residual;  // empty: none; set to the sum, which is rounded, in the last phase
  ConstNumberSpan weight;
  ConstNumberSpan bias;  // empty: none
  NumberSpan partials;   // three for each piece of rows of several
  NumberSpan result;
  RowSplit split;
  NormStep norm;
};

float value_at(PackedLine xs, PackedLine residuals, bool adds, uint k) {
  const float v = term_at(xs, k);
  return adds ? term_of(uvec2(bits_of_value(v + term_at(residuals, k)), 0)) : v;
}

// Returns the sums of numbers `first` and `second` of the three of each piece of a row, of this invocation's pieces.
vec2 sums_of_pieces(Piece p, uint first, uint second) {
  PackedLine words = PackedLine(ConstWords(uvec2(partials.data)), 0u);
  vec2 sums = vec2(0.0);
  for (uint i = p.lane; i < split.pieces; i += p.lanes) {
    const uint from = 3 * (p.row * split.pieces + i);
    sums += vec2(uintBitsToFloat(words.words.at[from + first]), uintBitsToFloat(words.words.at[from + second]));
  }
  return sums;
}

void write_partial(Piece p, uint which, float value) {
  write_word(uvec2(partials.data), plus(product(p.number, 3u), uvec2(which, 0)), floatBitsToUint(value));
}

// Returns the sum over the team. The previous sum has been read by then.
vec2 team_sum(vec2 mine) {
  barrier();
  return team_result(mine, split.lanes_log2);
}

void main() {
  const Piece p = piece_of(split);
  const uint size = p.last - p.first;
  const bool adds = residual.size != uvec2(0), has_bias = bias.size != uvec2(0), centered = norm.centered != 0;
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  PackedLine xs = line_of(uvec2(x.data), first), residuals = line_of(uvec2(residual.data), first);
  const float count = float(split.columns);

  float mean = 0.0;
  if (centered) {
    vec2 mine = vec2(0.0);
    if (norm.phase >= 2) {
      mine = sums_of_pieces(p, 0u, 0u);
    } else {
      vec4 parts = vec4(0.0);
      for (uint i = p.lane; 4 * i < size; i += p.lanes)
        for (uint j = 0; j < 4; ++j)
          if (4 * i + j < size) parts[j] += value_at(xs, residuals, adds, 4 * i + j);
      mine.x = (parts.x + parts.y) + (parts.z + parts.w);
    }
    const vec2 all = team_sum(mine);
    if (norm.phase == 1) {
      if (p.lane == 0 && size != 0)
        for (uint which = 0; which < 3; ++which) write_partial(p, which, which == 0 ? all.x : 0.0);
      return;
    }
    mean = all.x / count;
  }

  vec2 mine = vec2(0.0);
  if (norm.phase == 3) {
    mine = sums_of_pieces(p, 1u, 2u);
  } else {
    vec4 parts = vec4(0.0), squares = vec4(0.0);
    for (uint i = p.lane; 4 * i < size; i += p.lanes)
      for (uint j = 0; j < 4; ++j)
        if (4 * i + j < size) {
          precise const float deviation = value_at(xs, residuals, adds, 4 * i + j) - mean;
          parts[j] += deviation;
          squares[j] += deviation * deviation;
        }
    mine = vec2((parts.x + parts.y) + (parts.z + parts.w), (squares.x + squares.y) + (squares.z + squares.w));
  }
  const vec2 all = team_sum(mine);
  if (norm.phase == 2) {
    if (p.lane == 0 && size != 0) {
      if (!centered) write_partial(p, 0u, 0.0);
      write_partial(p, 1u, all.x);
      write_partial(p, 2u, all.y);
    }
    return;
  }

  precise const float correction = centered ? all.x / count : 0.0;
  float variance = all.y / count - correction * correction;
  if (variance < 0.0) variance = 0.0;
  const float inverse = 1.0 / sqrt(variance + norm.epsilon);

  PackedLine weights = line_of(uvec2(weight.data), uvec2(p.first, 0)), biases = line_of(uvec2(bias.data), uvec2(p.first, 0));
  PackedLine to = line_of(uvec2(result.data), first);
  const uint words = size == 0 ? 0u : words_of(to, size);
  for (uint i = p.lane; i < words; i += p.lanes) {
    vec2 values = vec2(0.0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint k = element_of_word(to, i, j);
      if (k >= size) continue;
      precise const float deviation = (value_at(xs, residuals, adds, k) - mean) - correction;
      values[j] = deviation * inverse * term_at(weights, k);
      if (has_bias) values[j] += term_at(biases, k);
    }
    write_values_of(to, i, size, values);
  }

  // The residual is overwritten after the whole team has read it: its words may have elements of other invocations.
  if (!adds) return;
  memoryBarrierBuffer();
  barrier();
  const uint sums = size == 0 ? 0u : words_of(residuals, size);
  for (uint i = p.lane; i < sums; i += p.lanes) {
    vec2 values = vec2(0.0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint k = element_of_word(residuals, i, j);
      if (k < size) values[j] = value_at(xs, residuals, true, k);
    }
    write_values_of(residuals, i, size, values);
  }
}
