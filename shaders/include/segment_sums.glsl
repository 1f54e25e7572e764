// Sums of the rows of whole stretches of segments. A row of sums that belongs to no segment becomes zeros.
#include "span.glsl"
#include "flat.glsl"
#include "lines.glsl"
#include "segments.glsl"

layout(push_constant) uniform Arguments {
  ConstNumberSpan x;
  ConstWordSpan offsets;
  FloatSpan sums;
  SegmentShape shape;
};

void main() {
  const SegmentPiece p = segment_piece_of(shape);
  if (p.size == 0u) return;
  const uint begin = stretch_begin(offsets.data, offsets.size.x - 1u, p.row, shape);
  const uint rows = begin < shape.rows ? segment_stretch : 0u;
  Floats to = Floats(element(uvec2(sums.data), plus(product(p.row, shape.columns), uvec2(p.first, 0))));
  for (uint k = elements_per_word * p.lane; k < p.size; k += elements_per_word * p.lanes) {
    const vec2 values = sums_of_rows(uvec2(x.data), begin, rows, shape.columns, p.first, k, p.size);
    to.at[k] = values.x;
#if PACKED_LOG2 == 1
    if (k + 1u < p.size) to.at[k + 1u] = values.y;
#endif
  }
}
