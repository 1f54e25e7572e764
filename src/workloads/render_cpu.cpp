#include "per_target.hpp"

#include <wye/workloads/render.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <memory>

#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A stroke in vectors.
class StrokeBrush {
 public:
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;

  explicit StrokeBrush(const PictureStroke& s)
      : along_x_(hn::Set(D(), s.along_x)),
        along_y_(hn::Set(D(), s.along_y)),
        part_(hn::Set(D(), s.along_x * s.inverse)),
        fade_(hn::Set(D(), s.fade)),
        begin_(hn::Set(D(), -s.inner * s.fade)),
        opacity_(hn::Set(D(), s.opacity)),
        red_(hn::Set(D(), s.red)),
        green_(hn::Set(D(), s.green)),
        blue_(hn::Set(D(), s.blue)) {}

  /// Blends the pixels [first, last) of a row, and up to a vector beyond: a stroke does not change
  /// pixels that it does not cover. `x` and `y` are the centre of pixel 0 from the stroke's first
  /// end, and `part` is the product of `y` with the part of the segment for each pixel of height.
  HWY_INLINE void blend(float x, float y, float part, std::size_t first, std::size_t last, float* red,
                        float* green, float* blue) const {
    const D d;
    const V zero = hn::Zero(d), one = hn::Set(d, 1.0f), down = hn::Set(d, y), base = hn::Set(d, part);
    for (std::size_t i = first; i < last; i += hn::Lanes(d)) {
      const V right = hn::Iota(d, x + static_cast<float>(i));
      const V nearest = hn::Min(hn::Max(hn::MulAdd(right, part_, base), zero), one);
      const V dx = hn::NegMulAdd(nearest, along_x_, right), dy = hn::NegMulAdd(nearest, along_y_, down);
      const V distance = hn::Sqrt(hn::MulAdd(dx, dx, hn::Mul(dy, dy)));
      const V faded = hn::Min(hn::Max(hn::MulAdd(distance, fade_, begin_), zero), one);
      const V edge = hn::NegMulAdd(hn::Set(d, 2.0f), faded, hn::Set(d, 3.0f));
      const V cover = hn::Mul(opacity_, hn::NegMulAdd(hn::Mul(faded, faded), edge, one));
      mix(red + i, red_, cover);
      mix(green + i, green_, cover);
      mix(blue + i, blue_, cover);
    }
  }

 private:
  static HWY_INLINE void mix(float* channel, V paint, V cover) {
    const V before = hn::LoadU(D(), channel);
    hn::StoreU(hn::MulAdd(cover, hn::Sub(paint, before), before), D(), channel);
  }

  V along_x_, along_y_, part_, fade_, begin_, opacity_, red_, green_, blue_;
};

/// Draws a stroke. Its pixels in a row are those of its box and of the strip around the line
/// through its segment.
void draw_stroke(const PictureStroke& given, const PaintedRows& rows) {
  const PictureStroke s = given;
  const StrokeBrush brush(s);
  const float width = static_cast<float>(rows.columns), height = static_cast<float>(rows.count);
  const float left = rows.left - s.x, top = rows.top - s.y;  // from the first end
  // A quarter of a pixel covers rounding.
  const float reach = s.outer + 0.25f;
  const auto first_row =
      static_cast<std::uint32_t>(std::clamp(std::min(s.along_y, 0.0f) - reach - top, 0.0f, height));
  const auto last_row =
      static_cast<std::uint32_t>(std::clamp(std::max(s.along_y, 0.0f) + reach - top + 1, 0.0f, height));
  const float lowest = std::min(s.along_x, 0.0f) - reach - left;
  const float highest = std::max(s.along_x, 0.0f) + reach - left;
  const bool is_level = std::abs(s.along_y) < 1e-3f;
  const float slope = is_level ? 0.0f : s.along_x / s.along_y;
  const float half_strip = is_level ? 0x1p30f : s.outer * std::sqrt(1 + slope * slope) + 0.25f;
  const float part = s.along_y * s.inverse;
  const std::size_t row_size = rows.row_size();
  float* red = rows.channel(first_row, 0);
  for (std::uint32_t row = first_row; row < last_row; ++row, red += 3 * row_size) {
    const float y = top + static_cast<float>(row), middle = y * slope - left;
    const float from = std::min(std::max(std::max(middle - half_strip, lowest), 0.0f), width);
    const float to = std::min(std::max(std::min(middle + half_strip, highest) + 1, 0.0f), width);
    brush.blend(left, y, y * part, static_cast<std::size_t>(from), static_cast<std::size_t>(to), red,
                red + row_size, red + 2 * row_size);
  }
}

/// Writes `count` pixels. The channels have numbers for whole vectors.
template <class D>
std::size_t write_part(D d, const float* red, const float* green, const float* blue, std::uint32_t* pixels,
                       std::size_t i, std::size_t count) {
  const hn::RebindToSigned<D> di;
  const auto byte = [&](const float* channel) HWY_ATTR {
    const auto range = hn::Min(hn::Max(hn::LoadU(d, channel + i), hn::Zero(d)), hn::Set(d, 1.0f));
    return hn::ConvertTo(di, hn::MulAdd(range, hn::Set(d, 255.0f), hn::Set(d, 0.5f)));
  };
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto colors =
        hn::Or(byte(red), hn::Or(hn::ShiftLeft<8>(byte(green)), hn::ShiftLeft<16>(byte(blue))));
    hn::StoreU(hn::Or(colors, hn::Set(di, static_cast<std::int32_t>(0xff000000u))), di,
               reinterpret_cast<std::int32_t*>(pixels + i));
  }
  return i;
}

void write_row(const float* red, const float* green, const float* blue, std::uint32_t* pixels,
               std::size_t count) {
  const std::size_t done = write_part(hn::ScalableTag<float>(), red, green, blue, pixels, 0, count);
  write_part(hn::CappedTag<float, 1>(), red, green, blue, pixels, done, count);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(draw_stroke);
HWY_EXPORT(write_row);

constexpr float farthest = 0x1p20f, full_turn = 6.283185307f;

void write_stroke(std::span<std::uint32_t> strokes, std::uint64_t stroke, const PictureStroke& s,
                  std::uint32_t color) {
  std::uint32_t* const words = strokes.data() + words_of_stroke * stroke;
  const float numbers[] = {s.x, s.y, s.along_x, s.along_y, s.inner, s.outer, s.opacity};
  for (std::size_t i = 0; i < 7; ++i) words[i] = std::bit_cast<std::uint32_t>(numbers[i]);
  words[7] = color;
}

void channels_of(std::uint32_t color, float& red, float& green, float& blue) {
  constexpr float unit = 1.0f / 1023;
  red = static_cast<float>(color & 1023) * unit;
  green = static_cast<float>(color >> 10 & 1023) * unit;
  blue = static_cast<float>(color >> 20 & 1023) * unit;
}

/// Reads all but the numbers that follow from others, and the color.
PictureStroke read_stroke(const std::uint32_t* words) {
  const auto number = [&](std::size_t i) { return std::bit_cast<float>(words[i]); };
  return {.x = number(0),
          .y = number(1),
          .along_x = number(2),
          .along_y = number(3),
          .inner = number(4),
          .outer = number(5),
          .opacity = number(6)};
}

constexpr PictureStroke hidden_stroke{.outer = -1};

/// Returns 0 for values below 0 and 1 for values above 1.
float unit_range(float v) { return std::clamp(v, 0.0f, 1.0f); }

/// Returns sin(2 pi turns).
float sine_of_turns(float turns) {
  float u = turns - std::floor(turns + 0.5f);
  u = u > 0.25f ? 0.5f - u : u < -0.25f ? -0.5f - u : u;
  return std::sin(full_turn * u);
}

/// Returns the color that is `part` between two others, times `light`.
std::uint32_t mixed_color(std::uint32_t low, std::uint32_t high, float part, float light) {
  float a[3], b[3];
  channels_of(low, a[0], a[1], a[2]);
  channels_of(high, b[0], b[1], b[2]);
  std::uint32_t color = 0;
  for (std::uint32_t i = 0; i < 3; ++i)
    color |= static_cast<std::uint32_t>(unit_range((a[i] + part * (b[i] - a[i])) * light) * 1023 + 0.5f)
             << 10 * i;
  return color;
}

/// Sets the place of a position in the picture. Returns whether there is a usable one.
bool find_place(const PointStyle& style, float position_x, float position_y, PictureStroke& s) {
  s.x = style.middle_x + (position_x - style.center_x) * style.scale;
  s.y = style.middle_y + (position_y - style.center_y) * style.scale;
  return std::abs(s.x) <= farthest && std::abs(s.y) <= farthest;
}

void write_link(std::span<const float> positions, std::uint32_t a, std::uint32_t b, std::size_t points,
                std::span<std::uint32_t> strokes, std::uint64_t stroke, const PointStyle& style) {
  PictureStroke from, to;
  const bool exists =
      a < points && b < points && a != b &&
      find_place(style, positions[2 * std::size_t{a}], positions[2 * std::size_t{a} + 1], from) &&
      find_place(style, positions[2 * std::size_t{b}], positions[2 * std::size_t{b} + 1], to);
  from.along_x = to.x - from.x;
  from.along_y = to.y - from.y;
  from.inner = style.link_inner;
  from.outer = style.link_outer;
  from.opacity = style.link_opacity;
  write_stroke(strokes, stroke, exists ? from : hidden_stroke, style.link_color);
}

void write_point(float position_x, float position_y, float given, std::span<std::uint32_t> strokes,
                 std::uint64_t stroke, const PointStyle& style) {
  const float value = given > 0 ? std::min(given, 1.0f) : 0.0f;
  float diameter = style.diameter, light = 1, factor = 1;
  PictureStroke s;
  s.opacity = style.opacity;
  if (style.is_heat != 0) {
    const float pulse = 0.9f + 0.1f * sine_of_turns(style.phase + 10 / full_turn * value);
    factor = (1 + value * style.spread) * pulse;
    diameter = 2 + 8 * value;
  } else {
    light = 0.7f + 0.3f * sine_of_turns(style.phase + 5 / full_turn * value);
    s.opacity *= value;
  }
  if (diameter < 1.5f) {
    s.opacity *= diameter * diameter / 2.25f;
    diameter = 1.5f;
  }
  s.inner = 0.3f * diameter;
  s.outer = 0.5f * diameter;
  const bool exists = find_place(style, position_x * factor, position_y * factor, s) && !std::isnan(given);
  write_stroke(strokes, stroke, exists ? s : hidden_stroke, mixed_color(style.low, style.high, value, light));
}

PictureStroke stripe_of(const MomentStyle& style, std::uint64_t stripe, float lane_height) {
  return {.x = -lane_height,
          .y = (2 * static_cast<float>(stripe) + 0.5f) * lane_height,
          .along_x = style.width + 2 * lane_height,
          .inner = std::max(lane_height / 2 - 0.5f, 0.0f),
          .outer = lane_height / 2 + 0.5f,
          .opacity = 1};
}

PictureStroke mark_of(const MomentStyle& style, const TimelinePoint& point, std::uint32_t mark,
                      float lane_height) {
  if (!(point.importance > 0) || !std::isfinite(point.importance)) return hidden_stroke;
  const float relevance = point.relevance > 0 ? std::min(point.relevance, 1.0f) : 0.0f;
  const float area = std::min(point.importance / style.full_importance, 1.0f);
  const float radius = std::max(style.largest * std::sqrt(area), 2.0f);
  // A multiple of 2^32 / the golden ratio: the heights of adjacent marks differ.
  const float height = 2 * static_cast<float>((mark * 2654435769u) >> 8) * 0x1p-24f - 1;
  const auto lane = static_cast<float>(std::min(point.category, style.lanes - 1));
  const float room = std::max(lane_height / 2 - radius - 1, 0.0f);
  const PictureStroke s{.x = (point.position - style.first) * style.scale,
                        .y = (lane + 0.5f) * lane_height + room * height,
                        .inner = radius - 0.5f,
                        .outer = radius + 0.5f,
                        .opacity = 0.2f + 0.7f * relevance};
  return std::abs(s.x) <= farthest && std::abs(s.y) <= farthest ? s : hidden_stroke;
}

/// Several adjacent tiles.
class PaintedRun {
 public:
  PaintedRun(const PicturePass& pass, std::uint32_t x, std::uint32_t y, std::uint32_t tiles, float* memory)
      : pass_(pass),
        first_(std::size_t{y} * pass.width + x),
        rows_{.memory = memory,
              .columns = std::min(tiles * picture_tile, pass.width - x),
              .count = std::min(picture_tile, pass.height - y),
              .left = static_cast<float>(x) + 0.5f,
              .top = static_cast<float>(y) + 0.5f} {}

  void begin(std::span<const std::uint32_t> before) const {
    float paint[3];
    channels_of(pass_.background, paint[0], paint[1], paint[2]);
    each_channel([&](float* channel, std::size_t pixel, std::uint32_t c) {
      std::fill(channel, channel + rows_.row_size(), paint[c]);
      if (before.empty()) return;
      for (std::uint32_t i = 0; i < rows_.columns; ++i)
        channel[i] = std::bit_cast<float>(before[3 * (pixel + i) + c]);
    });
  }

  /// Draws a stroke unless it is elsewhere.
  void draw(const std::uint32_t* words) const {
    PictureStroke s = read_stroke(words);
    const float right = rows_.left + static_cast<float>(rows_.columns - 1);
    const float bottom = rows_.top + static_cast<float>(rows_.count - 1);
    if (s.outer <= 0 || std::max(s.y, s.y + s.along_y) + s.outer < rows_.top ||
        std::min(s.y, s.y + s.along_y) - s.outer > bottom ||
        std::max(s.x, s.x + s.along_x) + s.outer < rows_.left ||
        std::min(s.x, s.x + s.along_x) - s.outer > right)
      return;
    const float square = s.along_x * s.along_x + s.along_y * s.along_y;
    s.inverse = square > 0 ? 1 / square : 0;
    s.fade = 1 / (s.outer - s.inner);
    channels_of(words[7], s.red, s.green, s.blue);
    HWY_DYNAMIC_DISPATCH(draw_stroke)(s, rows_);
  }

  void end(std::span<std::uint32_t> result) const {
    if (pass_.has_next == 0) {
      for (std::uint32_t row = 0; row < rows_.count; ++row) HWY_DYNAMIC_DISPATCH(write_row)
      (rows_.channel(row, 0), rows_.channel(row, 1), rows_.channel(row, 2),
       result.data() + first_ + std::size_t{row} * pass_.width, rows_.columns);
      return;
    }
    each_channel([&](const float* channel, std::size_t pixel, std::uint32_t c) {
      for (std::uint32_t i = 0; i < rows_.columns; ++i)
        result[3 * (pixel + i) + c] = std::bit_cast<std::uint32_t>(channel[i]);
    });
  }

 private:
  /// Calls `f(numbers, first pixel, c)` for each row and channel.
  template <class F>
  void each_channel(const F& f) const {
    for (std::uint32_t row = 0; row < rows_.count; ++row)
      for (std::uint32_t c = 0; c < 3; ++c)
        f(rows_.channel(row, c), first_ + std::size_t{row} * pass_.width, c);
  }

  PicturePass pass_;
  std::size_t first_;  // pixel
  PaintedRows rows_;
};

}  // namespace

void render_points(Range range, std::span<const float> positions, std::span<const float> values,
                   std::span<const std::uint32_t> ends, std::span<std::uint32_t> strokes, PointStyle style) {
  const std::size_t links = ends.size() / 2, points = values.size();
  for (const std::uint64_t i : below(range, links + points)) {
    if (i < links) {
      write_link(positions, ends[2 * i], ends[2 * i + 1], points, strokes, i, style);
    } else {
      const std::size_t point = i - links;
      write_point(positions[2 * point], positions[2 * point + 1], values[point], strokes, i, style);
    }
  }
}

void render_moments(Range range, std::span<const TimelinePoint> points, std::span<std::uint32_t> strokes,
                    MomentStyle style) {
  const std::uint32_t colors[] = {style.color0, style.color1, style.color2, style.color3,
                                  style.color4, style.color5, style.color6, style.color7};
  const float lane_height = style.height / static_cast<float>(style.lanes);
  const std::uint64_t before = std::uint64_t{style.stripes} + 1;
  for (const std::uint64_t i : below(range, before + points.size())) {
    if (i < style.stripes) {
      write_stroke(strokes, i, stripe_of(style, i, lane_height), style.stripe_color);
    } else if (i == style.stripes) {
      const PictureStroke line{
          .x = style.now, .along_y = style.height, .inner = 0.25f, .outer = 1.25f, .opacity = 1};
      write_stroke(strokes, i, line, style.now_color);
    } else {
      const TimelinePoint& point = points[i - before];
      write_stroke(strokes, i, mark_of(style, point, static_cast<std::uint32_t>(i - before), lane_height),
                   colors[std::min(point.category, 7u)]);
    }
  }
}

void render_bins(Range, std::span<const std::uint32_t>, std::span<std::uint32_t>, PicturePass) {}

void render_tiles(Range, std::span<const std::uint32_t>, std::span<const std::uint32_t>,
                  std::span<std::uint32_t>, PicturePass) {}

void render_paint(Range range, std::span<const std::uint32_t> strokes, std::span<const std::uint32_t>,
                  std::span<const std::uint32_t> before, std::span<std::uint32_t> result, PicturePass pass) {
  const Range items = below(range, tiles_of(pass) * items_of_tile);
  const std::uint64_t columns = parts_of(pass.width, picture_tile);
  const std::uint64_t last = (items.last + items_of_tile - 1) / items_of_tile;
  const auto longest = static_cast<std::uint32_t>(std::min<std::uint64_t>(columns, tiles_of_run));
  const std::unique_ptr<float[]> memory(new float[PaintedRows::memory_size(longest * picture_tile)]);
  for (std::uint64_t tile = (items.first + items_of_tile - 1) / items_of_tile; tile < last;) {
    const std::uint64_t column = tile % columns;
    const auto tiles =
        static_cast<std::uint32_t>(std::min({last - tile, columns - column, std::uint64_t{tiles_of_run}}));
    const PaintedRun run(pass, static_cast<std::uint32_t>(column) * picture_tile,
                         static_cast<std::uint32_t>(tile / columns) * picture_tile, tiles, memory.get());
    run.begin(before);
    for (std::uint32_t i = 0; i < pass.count; ++i)
      run.draw(strokes.data() + words_of_stroke * std::size_t{pass.first + i});
    run.end(result);
    tile += tiles;
  }
}

}  // namespace wye::workloads::cpu
#endif
