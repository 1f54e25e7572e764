#pragma once
/// A page to draw on, and its colours. Lengths are in pixels; y grows downwards.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct _cairo;
struct _cairo_surface;

namespace document_network {

struct Color {
  double red = 0, green = 0, blue = 0, alpha = 1;
  Color fade(double opacity) const { return {red, green, blue, alpha * opacity}; }
};

namespace colors {
inline constexpr Color paper{1.0, 1.0, 1.0}, ink{0.13, 0.14, 0.17}, quiet{0.42, 0.44, 0.49},
    faint{0.80, 0.81, 0.84}, wash{0.955, 0.960, 0.968};
}

/// Returns the colour of `value`, 0 to 1, on the scale "viridis": even steps look even, also to the
/// colour-blind and in grey.
Color viridis(double value);

/// Returns the colour of kind `index`. Seven colours that the colour-blind can distinguish, then
/// grey. Source: Okabe and Ito, "Color universal design", 2008.
Color kind_color(std::size_t index);

struct Point {
  double x = 0, y = 0;
};

struct Box {
  double x = 0, y = 0, width = 0, height = 0;
  double right() const { return x + width; }
  double bottom() const { return y + height; }
  bool overlaps(const Box& other) const {
    return x < other.right() && other.x < right() && y < other.bottom() && other.y < bottom();
  }
};

struct Style {
  double size = 18;
  Color color = colors::ink;
  bool bold = false;
  double align = 0;      ///< share of the text's width to the left of its position: 0, 0.5, 1
  bool outline = false;  ///< with a rim in the paper's colour, for text over other things
};

class Canvas {
 public:
  Canvas(int width, int height);

  double width() const { return width_; }
  double height() const { return height_; }

  void fill(const Box& box, Color color);
  void frame(const Box& box, Color color, double thickness = 1);
  void line(Point from, Point to, Color color, double thickness = 1);
  /// Draws an arc between two points; `bend` is its distance from the straight line, relative to
  /// the length.
  void curve(Point from, Point to, double bend, Color color, double thickness = 1);
  void area(const std::vector<Point>& outline, Color color);
  void disc(Point center, double radius, Color color);
  void ring(Point center, double radius, Color color, double thickness = 1);
  /// Writes UTF-8 on the line through `at`.
  void write(Point at, std::string_view text, const Style& style = {});
  double measure(std::string_view text, const Style& style = {}) const;
  /// Returns `text`, without its middle if it is wider than `width`.
  std::string fit(std::string_view text, double width, const Style& style = {}) const;
  /// Draws `pixels` (0xRRGGBB, row by row, `columns` in each) at `at`, unscaled.
  void image(Point at, const std::vector<std::uint32_t>& pixels, int columns);

  /// Writes the title and subtitle at the top of the page, and a line of small print at its foot.
  void headline(std::string_view title, std::string_view subtitle);
  void footnote(std::string_view text);

  /// Returns the page as PNG; empty if there was no memory.
  std::string png() const;

 private:
  struct Free {
    void operator()(_cairo* context) const;
    void operator()(_cairo_surface* surface) const;
  };
  void use(Color color) const;
  void use(const Style& style) const;
  int width_, height_;
  std::unique_ptr<_cairo_surface, Free> surface_;
  std::unique_ptr<_cairo, Free> context_;
};

}  // namespace document_network
