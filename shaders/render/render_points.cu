// Makes the strokes of links, then those of points.
#include "render.cuh"

struct PointStyle {
  float middle_x;
  float middle_y;
  float center_x;
  float center_y;
  float scale;
  unsigned is_heat;
  float phase;
  float spread;
  float diameter;
  float opacity;
  unsigned low;
  unsigned high;
  float link_inner;
  float link_outer;
  float link_opacity;
  unsigned link_color;
};

// Sets the place of a position in the picture. Returns whether there is a usable one.
__device__ bool find_place(const PointStyle& style, float position_x, float position_y, float& x, float& y) {
  x = fmaf(position_x - style.center_x, style.scale, style.middle_x);
  y = fmaf(position_y - style.center_y, style.scale, style.middle_y);
  return is_place(x, y);
}

__device__ Stroke stroke_of_link(wye_span<const float> positions, unsigned a, unsigned b, unsigned points,
                                 const PointStyle& style) {
  if (a >= points || b >= points || a == b) return no_stroke();
  float x, y, to_x, to_y;
  if (!find_place(style, positions[2 * a], positions[2 * a + 1], x, y)) return no_stroke();
  if (!find_place(style, positions[2 * b], positions[2 * b + 1], to_x, to_y)) return no_stroke();
  return {x, y, to_x - x, to_y - y, style.link_inner, style.link_outer, style.link_opacity, style.link_color};
}

__device__ float mixed(float low, float high, float part) { return fmaf(part, high - low, low); }

__device__ Stroke stroke_of_point(float position_x, float position_y, float given, const PointStyle& style) {
  if (!(given == given)) return no_stroke();
  const float value = unit_range(given);
  const Channels low = channels_of(style.low), high = channels_of(style.high);
  float diameter = style.diameter, opacity = style.opacity, factor = 1.0f, light = 1.0f;
  if (style.is_heat != 0) {
    factor = fmaf(value, style.spread, 1.0f) * fmaf(0.1f, sine_of_turns(fmaf(1.591549431f, value, style.phase)), 0.9f);
    diameter = fmaf(8.0f, value, 2.0f);
  } else {
    light = fmaf(0.3f, sine_of_turns(fmaf(0.7957747155f, value, style.phase)), 0.7f);
    opacity *= value;
  }
  if (diameter < 1.5f) {
    opacity *= diameter * diameter * (1.0f / 2.25f);
    diameter = 1.5f;
  }
  float x, y;
  if (!find_place(style, position_x * factor, position_y * factor, x, y)) return no_stroke();
  const unsigned color =
      color_of({mixed(low.red, high.red, value) * light, mixed(low.green, high.green, value) * light,
                mixed(low.blue, high.blue, value) * light});
  return {x, y, 0.0f, 0.0f, 0.3f * diameter, 0.5f * diameter, opacity, color};
}

extern "C" __global__ void __launch_bounds__(256)
    wye_render_points(wye_span<const float> positions, wye_span<const float> values, wye_span<const unsigned> ends,
                      wye_span<unsigned> strokes, PointStyle style) {
  const Size i = flat_thread();
  const unsigned points = unsigned(positions.size / 2), links = unsigned(ends.size / 2);
  if (i < links) {
    write_stroke(strokes, unsigned(i), stroke_of_link(positions, ends[2 * i], ends[2 * i + 1], points, style));
  } else if (i < Size(links) + points) {
    const unsigned point = unsigned(i) - links;
    write_stroke(strokes, unsigned(i),
                 stroke_of_point(positions[2 * point], positions[2 * point + 1], values[point], style));
  }
}
