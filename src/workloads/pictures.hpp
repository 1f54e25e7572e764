#pragma once
/// Pictures as kernels draw them: strokes, which are segments of lines with round ends, in order.
#include <algorithm>
#include <cstdint>

namespace wye::inline v0::workloads {

/// The words of a stroke in scratch memory: x and y of one end, the vector to the other, the
/// distances between which the edge fades, the opacity, and the color, 10 bits for each channel. A
/// stroke with a negative `outer` is not drawn. `shaders/include/render.glsl` and `render.cuh` have
/// the same.
inline constexpr std::uint32_t words_of_stroke = 8;
/// The strokes of one pass.
inline constexpr std::uint32_t strokes_of_pass = 4096;
/// Strokes are found by bins of 128 x 128 pixels, then by tiles of 16 x 16 pixels. A tile has 8
/// items. Squares have 8 x 8 bins or tiles.
inline constexpr std::uint32_t picture_tile = 16, picture_bin = 128, items_of_tile = 8, items_of_square = 64;

/// Kernel parameters, also declared in `shaders/include/render.glsl` and `render.cuh`. Numbers of
/// turns are angles / 2 pi.
struct PointStyle {
  float middle_x = 0;  ///< of the picture, in pixels
  float middle_y = 0;
  float center_x = 0;  ///< of the view
  float center_y = 0;
  float scale = 1;
  std::uint32_t is_heat = 0;
  float phase = 0;     ///< in turns
  float spread = 0;    ///< of heat
  float diameter = 0;  ///< of nodes, in pixels
  float opacity = 1;
  std::uint32_t low = 0;  ///< colors
  std::uint32_t high = 0;
  float link_inner = 0;
  float link_outer = 1;
  float link_opacity = 1;
  std::uint32_t link_color = 0;
};
static_assert(sizeof(PointStyle) == 64);

struct MomentStyle {
  float width = 0;  ///< of the picture
  float height = 0;
  float first = 0;  ///< time at the left edge
  float scale = 1;  ///< pixels per unit of time
  float now = 0;    ///< the place of the line, in pixels
  std::uint32_t lanes = 1;
  std::uint32_t stripes = 1;
  float largest = 2;  ///< radius in pixels
  float full_importance = 1;
  std::uint32_t stripe_color = 0;
  std::uint32_t now_color = 0;
  std::uint32_t color0 = 0;
  std::uint32_t color1 = 0;
  std::uint32_t color2 = 0;
  std::uint32_t color3 = 0;
  std::uint32_t color4 = 0;
  std::uint32_t color5 = 0;
  std::uint32_t color6 = 0;
  std::uint32_t color7 = 0;
};
static_assert(sizeof(MomentStyle) == 76);

struct PicturePass {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t first = 0;  ///< stroke
  std::uint32_t count = 0;  ///< of strokes, at most `strokes_of_pass`
  std::uint32_t background = 0;
  std::uint32_t has_next = 0;
};
static_assert(sizeof(PicturePass) == 24);

constexpr std::uint32_t words_of_mask(const PicturePass& pass) { return (pass.count + 31) / 32; }
constexpr std::uint32_t parts_of(std::uint32_t size, std::uint32_t part) { return (size + part - 1) / part; }
constexpr std::uint64_t tiles_of(const PicturePass& pass) {
  return std::uint64_t{parts_of(pass.width, picture_tile)} * parts_of(pass.height, picture_tile);
}
constexpr std::uint64_t bins_of(const PicturePass& pass) {
  return std::uint64_t{parts_of(pass.width, picture_bin)} * parts_of(pass.height, picture_bin);
}
constexpr std::uint64_t squares_of_bins(const PicturePass& pass) {
  return std::uint64_t{parts_of(pass.width, 8 * picture_bin)} * parts_of(pass.height, 8 * picture_bin);
}
/// Returns the words of `hits` in scratch memory, enough for the layouts of `render.glsl` and of
/// `render.cuh`.
constexpr std::uint64_t words_of_hits(const PicturePass& pass) {
  const std::uint64_t words = words_of_mask(pass);
  return std::max(bins_of(pass) * (1 + 32 * words) + tiles_of(pass) * words,
                  tiles_of(pass) * (1 + 2 * words));
}

}  // namespace wye::workloads
