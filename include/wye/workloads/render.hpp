#pragma once
/// Pictures of heat, of networks and of timelines, in memory of the device.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>
#include <wye/workloads/timeline.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Red, green and blue, 0 to 1 each.
struct Color {
  float red = 0;
  float green = 0;
  float blue = 0;
};

/// A picture has width * height pixels, row after row, the top row first. A pixel is four bytes:
/// red, green, blue and 255.
struct Picture {
  std::uint32_t width = 0;   ///< 1 to 16,384
  std::uint32_t height = 0;  ///< 1 to 16,384; at most 2^27 pixels
  Color background = {1, 1, 1};
};

/// The part of the plane of positions that a picture shows. x grows to the right, y grows
/// downwards.
struct PictureView {
  float x = 0;  ///< the position in the centre of the picture
  float y = 0;
  float scale = 1;  ///< pixels per unit, above 0
};

struct HeatmapOptions {
  PictureView view = {};
  double time = 0;                        ///< seconds
  float spread = 0;                       ///< at least 0; moves hot points away from the origin
  float opacity = 1;                      ///< 0 to 1
  Color low = {0.267f, 0.004f, 0.329f};   ///< of intensity 0
  Color high = {0.992f, 0.906f, 0.145f};  ///< of intensity 1
};

struct NetworkPictureOptions {
  PictureView view = {};
  double time = 0;                        ///< seconds
  float diameter = 1;                     ///< of a node, in units of the positions; at least 0
  float link_width = 1;                   ///< in pixels, 0 to 1024
  float link_opacity = 0.3f;              ///< 0 to 1
  Color low = {0.267f, 0.004f, 0.329f};   ///< of rank 0
  Color high = {0.992f, 0.906f, 0.145f};  ///< of rank 1
  Color links = {0.42f, 0.44f, 0.49f};
};

struct TimelinePictureOptions {
  float first = 0;            ///< the time at the left edge
  float last = 1;             ///< the time at the right edge, after `first`
  float now = 1;              ///< the time of the vertical line
  std::uint32_t lanes = 8;    ///< 1 to 256, from the top
  float largest = 28;         ///< the radius of the largest mark in pixels, 2 to 1024
  float full_importance = 1;  ///< the importance of the largest mark, above 0
  Color stripe = {0.955f, 0.960f, 0.968f};
  Color now_line = {0.42f, 0.44f, 0.49f};
  /// The colours of the categories. The last is that of all further categories.
  std::array<Color, 8> categories = {{{0, 0.447f, 0.698f},
                                      {0.835f, 0.369f, 0},
                                      {0, 0.620f, 0.451f},
                                      {0.8f, 0.475f, 0.655f},
                                      {0.902f, 0.624f, 0},
                                      {0.337f, 0.706f, 0.914f},
                                      {0.549f, 0.427f, 0.122f},
                                      {0.553f, 0.573f, 0.608f}}};
};

/// Draws a point for each intensity a, in order, over the background.
///
/// The pulse is 0.9 + 0.1 sin(3 time + 10 a). The point's position is x (1 + a spread) pulse, its diameter 2 + 8 a pixels, its
/// colour mix(low, high, a). At the distance d from its centre, in diameters, its opacity is
/// opacity (1 - smoothstep(0.3, 0.5, d)). Pixels have the colour at their centre.
///
/// An intensity below 0 or above 1 counts as 0 or 1. A point is not drawn if its intensity is NaN, or if its position is NaN,
/// infinite or beyond 2^20 pixels of the picture in a coordinate.
/// Shape:   `positions` has x and y of each point. At most 2^20 points, and as many pixels as the picture has.
/// Bound:   each channel is within 2 of the exact picture, if positions differ from the origin and from the centre of the view
///          by at most 4,096 pixels. Farther ones are rounded to 2^-22 of their distance.
/// Bits:    the same device gives the same bits.
/// Cost:    the pixels of the points, and all points for each 128 x 128 pixels. Scratch memory of 32 bytes for each point and
///          1 KiB for each 16 x 16 pixels, at least 17 KiB. More than 4,096 points take several passes and 24 bytes for
///          each pixel.
/// Errors:  invalid_argument (sizes that do not match, a picture or an option out of its range).
WYE_API Job render_heatmap(Read<float> positions, Read<float> intensities, Write<std::uint32_t> pixels,
                           Picture picture, HeatmapOptions options = {});

/// Draws the links of a network, and over them a point for each node, in order.
///
/// The colour of a node is mix(low, high, rank) (0.7 + 0.3 sin(time + 5 rank)). At the distance d
/// from its centre, in diameters, its opacity is rank (1 - smoothstep(0.3, 0.5, d)). A node of less
/// than 1.5 pixels has the diameter of 1.5 pixels and its opacity times the ratio of the areas. At
/// the distance d from its middle, in pixels, the opacity of a link of the width w is link_opacity
/// min(w, 1) (1 - smoothstep(max(w / 2 - 0.5, 0), w / 2 + 0.5, d)). Its ends are round.
///
/// Ranks below 0 or above 1 count as 0 or 1. A node is not drawn if its rank or its position is as
/// in `render_heatmap`. A link is not drawn if the position of one of its nodes is so, or if a node
/// does not exist or has a link to itself.
/// Shape:   `positions` has x and y of each node, as in `force_layout`. `ends` has two nodes for
///          each link, as in `network_links`. At most 2^20 nodes and links in all.
/// Bound:   as `render_heatmap`.
/// Bits:    the same device gives the same bits.
/// Cost:    as `render_heatmap`.
/// Errors:  as `render_heatmap`.
WYE_API Job render_network(Read<float> positions, Read<float> ranks, Read<std::uint32_t> ends,
                           Write<std::uint32_t> pixels, Picture picture, NetworkPictureOptions options = {});

/// Draws the points of `timeline` as round marks in the lanes of their categories. Every second
/// lane is a stripe.
///
/// The area of a mark is in proportion to its importance; its radius is at least 2 pixels. Its
/// opacity is 0.2 + 0.7 relevance. Edges are one pixel wide. The marks of a lane have different
/// heights, which depend on their place in `points`. Categories from the number of lanes on have
/// the last lane.
///
/// A mark is not drawn if its importance is not above 0, or infinite, or if its position is NaN,
/// infinite or beyond 2^20 pixels. A relevance below 0 or above 1 counts as 0 or 1, NaN as 0.
/// Shape:   at most 2^20 points with stripes.
/// Bound:   as `render_heatmap`.
/// Bits:    the same device gives the same bits.
/// Cost:    as `render_heatmap`.
/// Errors:  as `render_heatmap`.
WYE_API Job render_timeline(Read<TimelinePoint> points, Write<std::uint32_t> pixels, Picture picture,
                            TimelinePictureOptions options = {});

namespace reference {
/// Draw the same in float64, on the calling thread. Return red, green and blue of each pixel, 0 to
/// 255.
WYE_API std::vector<double> render_heatmap(std::span<const float> positions,
                                           std::span<const float> intensities, Picture picture,
                                           HeatmapOptions options = {});
WYE_API std::vector<double> render_network(std::span<const float> positions, std::span<const float> ranks,
                                           std::span<const std::uint32_t> ends, Picture picture,
                                           NetworkPictureOptions options = {});
WYE_API std::vector<double> render_timeline(std::span<const TimelinePoint> points, Picture picture,
                                            TimelinePictureOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
