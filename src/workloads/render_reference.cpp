#include <wye/workloads/render.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace wye::inline v0::workloads {
namespace {

struct ExactColor {
  double red = 0, green = 0, blue = 0;
};
ExactColor exact_color(const Color& c) { return {double{c.red}, double{c.green}, double{c.blue}}; }
ExactColor exact_mix(const Color& low, const Color& high, double part, double light) {
  const auto channel = [&](float a, float b) { return (double{a} + part * (double{b} - double{a})) * light; };
  return {channel(low.red, high.red), channel(low.green, high.green), channel(low.blue, high.blue)};
}

double exact_unit(double v) { return std::clamp(v, 0.0, 1.0); }
double exact_smoothstep(double low, double high, double v) {
  const double part = exact_unit((v - low) / (high - low));
  return part * part * (3 - 2 * part);
}

/// A picture in float64, which strokes are drawn on one after another.
class ExactPicture {
 public:
  explicit ExactPicture(const Picture& picture)
      : picture_(picture), channels_(3 * std::size_t{picture.width} * picture.height) {
    const ExactColor paint = exact_color(picture.background);
    for (std::size_t i = 0; i < channels_.size(); i += 3) {
      channels_[i] = paint.red;
      channels_[i + 1] = paint.green;
      channels_[i + 2] = paint.blue;
    }
  }

  /// Draws the segment from x, y to x + along_x, y + along_y, whose edge fades between two
  /// distances.
  void draw(double x, double y, double along_x, double along_y, double inner, double outer, double opacity,
            ExactColor paint) {
    const double square = along_x * along_x + along_y * along_y;
    const auto [left, right] = reach(x, x + along_x, outer, picture_.width);
    const auto [top, bottom] = reach(y, y + along_y, outer, picture_.height);
    for (std::size_t row = top; row < bottom; ++row)
      for (std::size_t column = left; column < right; ++column) {
        const double px = static_cast<double>(column) + 0.5 - x, py = static_cast<double>(row) + 0.5 - y;
        const double part = square > 0 ? exact_unit((px * along_x + py * along_y) / square) : 0.0;
        const double dx = px - part * along_x, dy = py - part * along_y,
                     distance = std::sqrt(dx * dx + dy * dy);
        if (distance >= outer) continue;
        const double cover = opacity * (1 - exact_smoothstep(inner, outer, distance));
        double* const pixel = &channels_[3 * (row * picture_.width + column)];
        pixel[0] += cover * (paint.red - pixel[0]);
        pixel[1] += cover * (paint.green - pixel[1]);
        pixel[2] += cover * (paint.blue - pixel[2]);
      }
  }

  std::vector<double> result() && {
    for (double& channel : channels_) channel *= 255;
    return std::move(channels_);
  }

 private:
  /// Returns the pixels of a row or column that a stroke from `a` to `b` may cover: [first, last).
  static std::pair<std::size_t, std::size_t> reach(double a, double b, double outer, std::uint32_t size) {
    const auto within = [&](double v) {
      return static_cast<std::size_t>(std::clamp(v, 0.0, static_cast<double>(size)));
    };
    return {within(std::floor(std::min(a, b) - outer - 1)), within(std::ceil(std::max(a, b) + outer + 1))};
  }

  Picture picture_;
  std::vector<double> channels_;
};

struct ExactPlace {
  double x = 0, y = 0;
  bool exists = false;
};
ExactPlace exact_place(double x, double y) { return {x, y, std::abs(x) <= 0x1p20 && std::abs(y) <= 0x1p20}; }
ExactPlace exact_place(const Picture& picture, const PictureView& view, double x, double y) {
  return exact_place(picture.width / 2.0 + (x - double{view.x}) * double{view.scale},
                     picture.height / 2.0 + (y - double{view.y}) * double{view.scale});
}

}  // namespace

namespace reference {

std::vector<double> render_heatmap(std::span<const float> positions, std::span<const float> intensities,
                                   Picture picture, HeatmapOptions options) {
  ExactPicture exact(picture);
  for (std::size_t i = 0; i < intensities.size(); ++i) {
    if (std::isnan(intensities[i])) continue;
    const double a = exact_unit(double{intensities[i]});
    const double factor =
        (1 + a * double{options.spread}) * (0.9 + 0.1 * std::sin(3 * options.time + 10 * a));
    const ExactPlace at = exact_place(picture, options.view, double{positions[2 * i]} * factor,
                                      double{positions[2 * i + 1]} * factor);
    const double size = 2 + 8 * a;
    if (at.exists)
      exact.draw(at.x, at.y, 0, 0, 0.3 * size, 0.5 * size, double{options.opacity},
                 exact_mix(options.low, options.high, a, 1));
  }
  return std::move(exact).result();
}

std::vector<double> render_network(std::span<const float> positions, std::span<const float> ranks,
                                   std::span<const std::uint32_t> ends, Picture picture,
                                   NetworkPictureOptions options) {
  ExactPicture exact(picture);
  const auto place = [&](std::size_t i) {
    return exact_place(picture, options.view, double{positions[2 * i]}, double{positions[2 * i + 1]});
  };
  const double width = double{options.link_width};
  for (std::size_t k = 0; k + 1 < ends.size(); k += 2) {
    if (ends[k] >= ranks.size() || ends[k + 1] >= ranks.size() || ends[k] == ends[k + 1]) continue;
    const ExactPlace a = place(ends[k]), b = place(ends[k + 1]);
    if (a.exists && b.exists)
      exact.draw(a.x, a.y, b.x - a.x, b.y - a.y, std::max(width / 2 - 0.5, 0.0), width / 2 + 0.5,
                 double{options.link_opacity} * std::min(width, 1.0), exact_color(options.links));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (std::isnan(ranks[i])) continue;
    const double rank = exact_unit(double{ranks[i]});
    double size = std::min(double{options.diameter} * double{options.view.scale}, 0x1p20), opacity = rank;
    if (size < 1.5) {
      opacity *= size * size / (1.5 * 1.5);
      size = 1.5;
    }
    const ExactPlace at = place(i);
    if (at.exists)
      exact.draw(at.x, at.y, 0, 0, 0.3 * size, 0.5 * size, opacity,
                 exact_mix(options.low, options.high, rank, 0.7 + 0.3 * std::sin(options.time + 5 * rank)));
  }
  return std::move(exact).result();
}

std::vector<double> render_timeline(std::span<const TimelinePoint> points, Picture picture,
                                    TimelinePictureOptions options) {
  ExactPicture exact(picture);
  const double width = picture.width, lane_height = static_cast<double>(picture.height) / options.lanes;
  const double scale = width / (double{options.last} - double{options.first});
  for (std::uint32_t lane = 0; lane < options.lanes; lane += 2)
    exact.draw(-lane_height, (lane + 0.5) * lane_height, width + 2 * lane_height, 0,
               std::max(lane_height / 2 - 0.5, 0.0), lane_height / 2 + 0.5, 1, exact_color(options.stripe));
  exact.draw((double{options.now} - double{options.first}) * scale, 0, 0, picture.height, 0.25, 1.25, 1,
             exact_color(options.now_line));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const TimelinePoint& point = points[i];
    if (!(point.importance > 0) || !std::isfinite(point.importance)) continue;
    const double relevance = std::isnan(point.relevance) ? 0.0 : exact_unit(double{point.relevance});
    const double area = std::min(double{point.importance} / double{options.full_importance}, 1.0);
    const double radius = std::max(double{options.largest} * std::sqrt(area), 2.0);
    const double height =
        2 * static_cast<double>((static_cast<std::uint32_t>(i) * 2654435769u) >> 8) * 0x1p-24 - 1;
    const double y = (std::min(point.category, options.lanes - 1) + 0.5) * lane_height +
                     std::max(lane_height / 2 - radius - 1, 0.0) * height;
    const ExactPlace at = exact_place((double{point.position} - double{options.first}) * scale, y);
    if (at.exists)
      exact.draw(at.x, at.y, 0, 0, radius - 0.5, radius + 0.5, 0.2 + 0.7 * relevance,
                 exact_color(options.categories[std::min(point.category, 7u)]));
  }
  return std::move(exact).result();
}

}  // namespace reference
}  // namespace wye::workloads
