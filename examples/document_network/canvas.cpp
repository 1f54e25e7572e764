#include "canvas.hpp"

#include <cairo.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "text.hpp"

namespace document_network {
namespace {

constexpr double page_margin = 60;

Color mix(Color a, Color b, double t) {
  return {a.red + (b.red - a.red) * t, a.green + (b.green - a.green) * t, a.blue + (b.blue - a.blue) * t, 1};
}

constexpr Color rgb(unsigned code) {
  return {((code >> 16) & 255) / 255.0, ((code >> 8) & 255) / 255.0, (code & 255) / 255.0, 1};
}

}  // namespace

Color viridis(double value) {
  static constexpr std::array<Color, 9> stops{rgb(0x440154), rgb(0x472d7b), rgb(0x3b528b),
                                              rgb(0x2c728e), rgb(0x21918c), rgb(0x28ae80),
                                              rgb(0x5ec962), rgb(0xaddc30), rgb(0xfde725)};
  const double place = std::clamp(std::isfinite(value) ? value : 0.0, 0.0, 1.0) * (stops.size() - 1);
  const std::size_t below = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  return mix(stops[below], stops[below + 1], place - static_cast<double>(below));
}

Color kind_color(std::size_t index) {
  static constexpr std::array<Color, 8> kinds{rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7),
                                              rgb(0xe69f00), rgb(0x56b4e9), rgb(0x8c6d1f), rgb(0x8d929b)};
  return kinds[std::min(index, kinds.size() - 1)];
}

void Canvas::Free::operator()(cairo_t* context) const { cairo_destroy(context); }
void Canvas::Free::operator()(cairo_surface_t* surface) const { cairo_surface_destroy(surface); }

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      surface_(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height)),
      context_(cairo_create(surface_.get())) {
  fill({0, 0, static_cast<double>(width), static_cast<double>(height)}, colors::paper);
  cairo_set_line_cap(context_.get(), CAIRO_LINE_CAP_ROUND);
  cairo_set_line_join(context_.get(), CAIRO_LINE_JOIN_ROUND);
}

void Canvas::use(Color color) const {
  cairo_set_source_rgba(context_.get(), color.red, color.green, color.blue, color.alpha);
}

void Canvas::use(const Style& style) const {
  cairo_select_font_face(context_.get(), "DejaVu Sans", CAIRO_FONT_SLANT_NORMAL,
                         style.bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_.get(), style.size);
}

void Canvas::fill(const Box& box, Color color) {
  use(color);
  cairo_rectangle(context_.get(), box.x, box.y, box.width, box.height);
  cairo_fill(context_.get());
}

void Canvas::frame(const Box& box, Color color, double thickness) {
  use(color);
  cairo_set_line_width(context_.get(), thickness);
  cairo_rectangle(context_.get(), box.x - thickness / 2, box.y - thickness / 2, box.width + thickness,
                  box.height + thickness);
  cairo_stroke(context_.get());
}

void Canvas::line(Point from, Point to, Color color, double thickness) {
  curve(from, to, 0, color, thickness);
}

void Canvas::curve(Point from, Point to, double bend, Color color, double thickness) {
  const Point aside{(to.y - from.y) * bend, (from.x - to.x) * bend};
  use(color);
  cairo_set_line_width(context_.get(), thickness);
  cairo_move_to(context_.get(), from.x, from.y);
  cairo_curve_to(context_.get(), from.x + (to.x - from.x) / 3 + aside.x,
                 from.y + (to.y - from.y) / 3 + aside.y, to.x + (from.x - to.x) / 3 + aside.x,
                 to.y + (from.y - to.y) / 3 + aside.y, to.x, to.y);
  cairo_stroke(context_.get());
}

void Canvas::area(const std::vector<Point>& outline, Color color) {
  use(color);
  for (const Point& point : outline) cairo_line_to(context_.get(), point.x, point.y);
  cairo_close_path(context_.get());
  cairo_fill(context_.get());
}

void Canvas::disc(Point center, double radius, Color color) {
  use(color);
  cairo_new_path(context_.get());
  cairo_arc(context_.get(), center.x, center.y, radius, 0, 2 * M_PI);
  cairo_fill(context_.get());
}

void Canvas::ring(Point center, double radius, Color color, double thickness) {
  use(color);
  cairo_set_line_width(context_.get(), thickness);
  cairo_new_path(context_.get());
  cairo_arc(context_.get(), center.x, center.y, radius, 0, 2 * M_PI);
  cairo_stroke(context_.get());
}

void Canvas::write(Point at, std::string_view text, const Style& style) {
  const std::string shown = printable(text);
  use(style);
  cairo_move_to(context_.get(), at.x - style.align * measure(shown, style), at.y);
  if (style.outline) {
    use(colors::paper.fade(0.9));
    cairo_set_line_width(context_.get(), style.size / 4);
    cairo_text_path(context_.get(), shown.c_str());
    cairo_stroke(context_.get());
    cairo_move_to(context_.get(), at.x - style.align * measure(shown, style), at.y);
  }
  use(style.color);
  cairo_show_text(context_.get(), shown.c_str());
  cairo_new_path(context_.get());
}

double Canvas::measure(std::string_view text, const Style& style) const {
  cairo_text_extents_t extents;
  use(style);
  cairo_text_extents(context_.get(), printable(text).c_str(), &extents);
  return extents.x_advance;
}

std::string Canvas::fit(std::string_view text, double width, const Style& style) const {
  std::string shown = printable(text);
  for (std::size_t limit = length(shown); limit > 1 && measure(shown, style) > width;)
    shown = printable(text, --limit);
  return shown;
}

void Canvas::image(Point at, const std::vector<std::uint32_t>& pixels, int columns) {
  const auto row = static_cast<std::size_t>(columns), rows = pixels.size() / row;
  const std::unique_ptr<cairo_surface_t, Free> image(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, columns, static_cast<int>(rows)));
  if (cairo_surface_status(image.get()) != CAIRO_STATUS_SUCCESS) return;
  unsigned char* data = cairo_image_surface_get_data(image.get());
  const auto stride = static_cast<std::size_t>(cairo_image_surface_get_stride(image.get()));
  for (std::size_t y = 0; y < rows; ++y)
    std::memcpy(data + y * stride, pixels.data() + y * row, row * sizeof(std::uint32_t));
  cairo_surface_mark_dirty(image.get());
  cairo_set_source_surface(context_.get(), image.get(), at.x, at.y);
  cairo_paint(context_.get());
}

void Canvas::headline(std::string_view title, std::string_view subtitle) {
  write({page_margin, 78}, title, {.size = 36, .bold = true});
  write({page_margin, 114}, subtitle, {.size = 19, .color = colors::quiet});
}

void Canvas::footnote(std::string_view text) {
  write({page_margin, height() - 34}, text, {.size = 15, .color = colors::quiet});
}

std::string Canvas::png() const {
  std::string bytes;
  const auto append = [](void* to, const unsigned char* data, unsigned size) {
    static_cast<std::string*>(to)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  };
  if (cairo_status(context_.get()) != CAIRO_STATUS_SUCCESS ||
      cairo_surface_write_to_png_stream(surface_.get(), append, &bytes) != CAIRO_STATUS_SUCCESS)
    bytes.clear();
  return bytes;
}

}  // namespace document_network
