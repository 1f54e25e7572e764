// result = silu(gate) * up.
#include "span.glsl"
#include "flat.glsl"
#include "rows.glsl"
#include "lines.glsl"
#include "exponential.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan gate;
  ConstNumberSpan up;
  NumberSpan result;
  RowSplit split;
};

// Returns v / (1 + exp(-v)), without an exponential that overflows; -0 below -87.
float silu(float v) {
  if (v < -87.0) return uintBitsToFloat(0x80000000u);
  const float e = exponential(-abs(v));
  return v * ((v < 0.0 ? e : 1.0) / (1.0 + e));
}

void main() {
  const Piece p = piece_of(split);
  const uint size = p.last - p.first;
  if (size == 0) return;
  const uvec2 first = plus(product(p.row, split.columns), uvec2(p.first, 0));
  PackedLine gates = line_of(uvec2(gate.data), first), ups = line_of(uvec2(up.data), first);
  PackedLine to = line_of(uvec2(result.data), first);
  const uint words = words_of(to, size);
  for (uint i = p.lane; i < words; i += p.lanes) {
    vec2 values = vec2(0.0);
    for (uint j = 0; j < elements_per_word; ++j) {
      const uint k = element_of_word(to, i, j);
      if (k < size) values[j] = silu(term_at(gates, k)) * term_at(ups, k);
    }
    write_values_of(to, i, size, values);
  }
}
