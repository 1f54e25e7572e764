// Means of segments, from the sums of their whole stretches and from the rows beyond.
#include "span.glsl"
#include "flat.glsl"
#include "lines.glsl"
#include "segments.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  ConstWordSpan offsets;
  ConstFloatSpan sums;
  NumberSpan result;
  SegmentShape shape;
};

// Returns the sums of columns k and k + 1 of a piece over the whole stretches of a segment.
vec2 sums_of_stretches(SegmentPiece p, SegmentRows r, uint k) {
  uvec2 at = plus(product(r.first_sum, shape.columns), uvec2(p.first, 0));
  const uint stretches = (r.rest - r.begin) / segment_stretch;
  vec2 total = vec2(0.0);
  for (uint group = 0u; group < stretches; group += segment_group) {
    vec2 part = vec2(0.0);
    for (uint i = group; i < min(group + segment_group, stretches); ++i, at = plus(at, uvec2(shape.columns, 0))) {
      ConstFloats from = ConstFloats(element(uvec2(sums.data), at));
      if (k < p.size) part.x += from.at[k];
#if PACKED_LOG2 == 1
      if (k + 1u < p.size) part.y += from.at[k + 1u];
#endif
    }
    total += part;
  }
  return total;
}

void main() {
  const SegmentPiece p = segment_piece_of(shape);
  if (p.size == 0u) return;
  const SegmentRows r = segment_rows(offsets.data, p.row, shape);
  const float count = float(max(r.end - r.begin, 1u));
  PackedLine to = line_of(uvec2(result.data), plus(product(p.row, shape.columns), uvec2(p.first, 0)));
  const uint words = words_of(to, p.size);
  for (uint i = p.lane; i < words; i += p.lanes) {
    const uint k = element_of_word(to, i, 0u);
    const vec2 rest = sums_of_rows(uvec2(x.data), r.rest, r.end - r.rest, shape.columns, p.first, k, p.size);
    write_values_of(to, i, p.size, (sums_of_stretches(p, r, k) + rest) / count);
  }
}
