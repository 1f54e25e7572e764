#version 460
// Makes the strokes of a timeline: stripes, the line of now, and marks.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"
#include "placed.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ConstPlacedPoints { Placed at[]; };
struct ConstPlacedSpan {
  ConstPlacedPoints data;
  uvec2 size;
};

struct MomentStyle {
  float width;
  float height;
  float first;
  float scale;
  float now;
  uint lanes;
  uint stripes;
  float largest;
  float full_importance;
  uint stripe_color;
  uint now_color;
  uint color0;
  uint color1;
  uint color2;
  uint color3;
  uint color4;
  uint color5;
  uint color6;
  uint color7;
};

layout(push_constant) uniform Arguments {
  ConstPlacedSpan points;
  WordSpan strokes;
  MomentStyle style;
};

uint color_of_category(uint category) {
  const uvec4 low = uvec4(style.color0, style.color1, style.color2, style.color3);
  const uvec4 high = uvec4(style.color4, style.color5, style.color6, style.color7);
  return category < 4 ? low[category] : high[min(category, 7u) - 4];
}

Stroke stroke_of_stripe(uint stripe, float lane_height) {
  const float y = (2.0 * float(stripe) + 0.5) * lane_height, half_height = 0.5 * lane_height;
  return Stroke(vec2(-lane_height, y), vec2(style.width + 2.0 * lane_height, 0.0), max(half_height - 0.5, 0.0),
                half_height + 0.5, 1.0, style.stripe_color);
}

Stroke stroke_of_mark(uint mark, float lane_height) {
  const float position = points.data.at[mark].position, importance = points.data.at[mark].importance;
  const float given = points.data.at[mark].relevance;
  const uint category = points.data.at[mark].category, bits = floatBitsToUint(importance);
  if (bits == 0 || bits >= 0x7f800000) return no_stroke();  // zero, negative, infinite or NaN
  const float relevance = is_nan(given) ? 0.0 : clamp(given, 0.0, 1.0);
  const float radius = max(style.largest * sqrt(max(min(importance / style.full_importance, 1.0), 1e-20)), 2.0);
  // A multiple of 2^32 / the golden ratio: the heights of adjacent marks differ.
  const float height = 2.0 * float((mark * 2654435769u) >> 8) * 5.9604644775390625e-8 - 1.0;  // 2^-24
  const float lane = float(min(category, style.lanes - 1u));
  const float y = (lane + 0.5) * lane_height + max(0.5 * lane_height - radius - 1.0, 0.0) * height;
  const vec2 at = vec2((position - style.first) * style.scale, y);
  if (!is_place(at)) return no_stroke();
  return Stroke(at, vec2(0.0), radius - 0.5, radius + 0.5, 0.2 + 0.7 * relevance, color_of_category(category));
}

void main() {
  const uint i = flat_unit(0), marks = points.size.x;
  if (i >= style.stripes + 1 + marks) return;
  const float lane_height = style.height / float(style.lanes);
  if (i < style.stripes)
    write_stroke(strokes, i, stroke_of_stripe(i, lane_height));
  else if (i == style.stripes)
    write_stroke(strokes, i,
                 Stroke(vec2(style.now, 0.0), vec2(0.0, style.height), 0.25, 1.25, 1.0, style.now_color));
  else
    write_stroke(strokes, i, stroke_of_mark(i - style.stripes - 1, lane_height));
}
