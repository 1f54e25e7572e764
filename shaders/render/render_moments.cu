// Makes the strokes of a timeline: stripes, the line of now, and marks.
#include "render.cuh"
#include "placed.cuh"

struct MomentStyle {
  float width;
  float height;
  float first;
  float scale;
  float now;
  unsigned lanes;
  unsigned stripes;
  float largest;
  float full_importance;
  unsigned stripe_color;
  unsigned now_color;
  unsigned color0;
  unsigned color1;
  unsigned color2;
  unsigned color3;
  unsigned color4;
  unsigned color5;
  unsigned color6;
  unsigned color7;
};

__device__ unsigned color_of_category(const MomentStyle& style, unsigned category) {
  switch (category) {
    case 0: return style.color0;
    case 1: return style.color1;
    case 2: return style.color2;
    case 3: return style.color3;
    case 4: return style.color4;
    case 5: return style.color5;
    case 6: return style.color6;
    default: return style.color7;
  }
}

__device__ Stroke stroke_of_stripe(const MomentStyle& style, unsigned stripe, float lane_height) {
  const float y = (2.0f * float(stripe) + 0.5f) * lane_height, half_height = 0.5f * lane_height;
  return {-lane_height, y, style.width + 2.0f * lane_height, 0.0f, fmaxf(half_height - 0.5f, 0.0f), half_height + 0.5f,
          1.0f, style.stripe_color};
}

__device__ Stroke stroke_of_mark(const MomentStyle& style, Placed placed, unsigned mark, float lane_height) {
  if (!(placed.importance > 0.0f) || placed.importance > 3.402823466e38f) return no_stroke();
  const float relevance = placed.relevance == placed.relevance ? unit_range(placed.relevance) : 0.0f;
  const float area = fminf(placed.importance / style.full_importance, 1.0f);
  const float radius = fmaxf(style.largest * sqrtf(area), 2.0f);
  // A multiple of 2^32 / the golden ratio: the heights of adjacent marks differ.
  const float height = 2.0f * float((mark * 2654435769u) >> 8) * 5.9604644775390625e-8f - 1.0f;  // 2^-24
  const float lane = float(min(placed.category, style.lanes - 1));
  const float y = fmaf(lane + 0.5f, lane_height, fmaxf(0.5f * lane_height - radius - 1.0f, 0.0f) * height);
  const float x = (placed.position - style.first) * style.scale;
  if (!is_place(x, y)) return no_stroke();
  return {x,
          y,
          0.0f,
          0.0f,
          radius - 0.5f,
          radius + 0.5f,
          fmaf(0.7f, relevance, 0.2f),
          color_of_category(style, placed.category)};
}

extern "C" __global__ void __launch_bounds__(256)
    wye_render_moments(wye_span<const Placed> points, wye_span<unsigned> strokes, MomentStyle style) {
  const Size i = flat_thread();
  const unsigned before = style.stripes + 1, number = unsigned(i);
  if (i >= before + points.size) return;
  const float lane_height = style.height / float(style.lanes);
  if (number < style.stripes)
    write_stroke(strokes, number, stroke_of_stripe(style, number, lane_height));
  else if (number == style.stripes)
    write_stroke(strokes, number, {style.now, 0.0f, 0.0f, style.height, 0.25f, 1.25f, 1.0f, style.now_color});
  else
    write_stroke(strokes, number, stroke_of_mark(style, points[number - before], number - before, lane_height));
}
