#version 460
// Makes the strokes of links, then those of points.
#include "span.glsl"
#include "flat.glsl"
#include "render.glsl"

struct PointStyle {
  float middle_x;
  float middle_y;
  float center_x;
  float center_y;
  float scale;
  uint is_heat;
  float phase;
  float spread;
  float diameter;
  float opacity;
  uint low;
  uint high;
  float link_inner;
  float link_outer;
  float link_opacity;
  uint link_color;
};

layout(push_constant) uniform Arguments {
  ConstFloatSpan positions;
  ConstFloatSpan values;
  ConstWordSpan ends;
  WordSpan strokes;
  PointStyle style;
};

// Returns the place of a position in the picture.
vec2 place_of(vec2 position) {
  return vec2(style.middle_x, style.middle_y) + (position - vec2(style.center_x, style.center_y)) * style.scale;
}
vec2 position_of(uint point) { return vec2(positions.data.at[2 * point], positions.data.at[2 * point + 1]); }

Stroke stroke_of_link(uint link, uint points) {
  const uint a = ends.data.at[2 * link], b = ends.data.at[2 * link + 1];
  if (a >= points || b >= points || a == b) return no_stroke();
  const vec2 from = place_of(position_of(a)), to = place_of(position_of(b));
  if (!is_place(from) || !is_place(to)) return no_stroke();
  return Stroke(from, to - from, style.link_inner, style.link_outer, style.link_opacity, style.link_color);
}

Stroke stroke_of_point(uint point) {
  const float given = values.data.at[point];
  if (is_nan(given)) return no_stroke();
  const float value = clamp(given, 0.0, 1.0);
  vec2 position = position_of(point);
  vec3 color = mix(channels_of(style.low), channels_of(style.high), value);
  float diameter = style.diameter, opacity = style.opacity;
  if (style.is_heat != 0) {
    const float pulse = 0.9 + 0.1 * sine_of_turns(style.phase + 1.591549431 * value);  // 10 / 2 pi
    position *= (1.0 + value * style.spread) * pulse;
    diameter = 2.0 + 8.0 * value;
  } else {
    color *= 0.7 + 0.3 * sine_of_turns(style.phase + 0.7957747155 * value);  // 5 / 2 pi
    opacity *= value;
  }
  if (diameter < 1.5) {
    opacity *= diameter * diameter * (1.0 / 2.25);
    diameter = 1.5;
  }
  const vec2 at = place_of(position);
  if (!is_place(at)) return no_stroke();
  return Stroke(at, vec2(0.0), 0.3 * diameter, 0.5 * diameter, opacity, color_of(color));
}

void main() {
  const uint i = flat_unit(0), points = positions.size.x / 2, links = ends.size.x / 2;
  if (i >= links + points) return;
  if (i < links)
    write_stroke(strokes, i, stroke_of_link(i, points));
  else
    write_stroke(strokes, i, stroke_of_point(i - links));
}
