#include <wye/workloads/render.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "cpu.hpp"
#include "render_kernels.hpp"
#include "steps.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& points_kernel() {
  static const auto kernel =
      make_kernel<Read<float>, Read<float>, Read<std::uint32_t>, Write<std::uint32_t>, PointStyle>(
          kernels::render_points, {"positions", "values", "ends", "strokes", "style"}, {},
          {host(cpu::render_points, {.tile = Extent3(2048)})});
  return kernel;
}

const auto& moments_kernel() {
  static const auto kernel = make_kernel<Read<TimelinePoint>, Write<std::uint32_t>, MomentStyle>(
      kernels::render_moments, {"points", "strokes", "style"}, {},
      {host(cpu::render_moments, {.tile = Extent3(2048)})});
  return kernel;
}

/// A workgroup of GLSL has 32 squares of 8 x 8 bins, or 32 bins.
constexpr Tiles tiles_of_squares{.glsl = Extent3(32 * items_of_square)};

const auto& bins_kernel() {
  static const auto kernel =
      make_kernel_with_shared_reads<Read<std::uint32_t>, Write<std::uint32_t>, PicturePass>(
          kernels::render_bins, {"strokes", "masks", "pass"}, tiles_of_squares,
          host(cpu::render_bins, {.tile = Extent3(0)}));
  return kernel;
}

const auto& tiles_kernel() {
  static const auto kernel = make_kernel_with_shared_reads<Read<std::uint32_t>, Read<std::uint32_t>,
                                                           Write<std::uint32_t>, PicturePass>(
      kernels::render_tiles, {"strokes", "masks", "hits", "pass"}, tiles_of_squares,
      host(cpu::render_tiles, {.tile = Extent3(0)}));
  return kernel;
}

std::vector<Macro> macro_if(bool is_defined, const char* name) {
  return is_defined ? std::vector<Macro>{{.name = name, .value = ""}} : std::vector<Macro>();
}

/// Makes the last step of a pass. The items of a tile are invocations of the GLSL text. A block of
/// CUDA has a tile. If `is_bound`, the variant with subgroups has its buffers as descriptors.
/// Lavapipe 22.3 reads and writes descriptors in a quarter of the time of addresses. If
/// `has_passes`, the text can keep channels between passes. On lavapipe this takes time even if
/// there is one pass.
auto make_paint_kernel(bool is_bound, bool has_passes) {
  return make_kernel_with_shared_reads<Read<std::uint32_t>, Read<std::uint32_t>, Read<std::uint32_t>,
                                       Write<std::uint32_t>, PicturePass>(
      kernels::render_paint, {"strokes", "hits", "before", "result", "pass"},
      {.cuda = Extent3(items_of_tile)},
      host(cpu::render_paint, {.tile = Extent3(cpu::tiles_of_run * items_of_tile)}),
      macro_if(has_passes, "PASSES"), macro_if(is_bound, "BOUND"));
}
const auto& paint_kernel(bool is_bound, bool has_passes) {
  static const std::array kernels{make_paint_kernel(false, false), make_paint_kernel(false, true),
                                  make_paint_kernel(true, false), make_paint_kernel(true, true)};
  return kernels[(is_bound ? 2u : 0u) + (has_passes ? 1u : 0u)];
}

/// Whether every Vulkan device can bind an operand: descriptors cover at least 2^27 bytes, and
/// begin at a multiple of at most 256 bytes.
bool can_be_bound(const wye::detail::Operand& operand) {
  return operand.bytes() <= Bytes{std::uint64_t{1} << 27} && operand.offset * operand.size % 256 == 0;
}

constexpr std::uint32_t longest_side = 16384, most_lanes = 256;
constexpr std::uint64_t most_pixels = std::uint64_t{1} << 27, most_strokes = std::uint64_t{1} << 20;
constexpr double full_turn = 6.283185307179586;
/// Lengths and positions beyond it, in pixels, are not drawn.
constexpr double farthest_pixel = 0x1p20;

std::string number_of(double value) { return std::to_string(value); }
std::string number_of(std::uint64_t value) { return std::to_string(value); }

/// Collects the reason of a refusal: the first value that is out of its range.
class PictureCheck {
 public:
  explicit PictureCheck(const char* workload) : workload_(workload) {}

  PictureCheck& in_range(const char* name, double value, double low, double high) {
    if (!(value >= low && value <= high))
      refuse(std::string(name) + " (" + number_of(value) + ") of workload '" + workload_ +
             "' is not between " + number_of(low) + " and " + number_of(high) + ".");
    return *this;
  }
  PictureCheck& above_zero(const char* name, double value) {
    if (!(value > 0 && std::isfinite(value)))
      refuse(std::string(name) + " (" + number_of(value) + ") of workload '" + workload_ +
             "' is not finite and above 0.");
    return *this;
  }
  PictureCheck& finite(const char* name, double value) {
    if (!std::isfinite(value))
      refuse(std::string(name) + " (" + number_of(value) + ") of workload '" + workload_ +
             "' is not finite.");
    return *this;
  }
  PictureCheck& size(const char* name, std::uint64_t value, std::uint64_t low, std::uint64_t high) {
    if (value < low || value > high)
      refuse(std::string(name) + " (" + number_of(value) + ") of workload '" + workload_ +
             "' is not between " + number_of(low) + " and " + number_of(high) + ".");
    return *this;
  }
  /// Checks that there are `wanted` elements.
  PictureCheck& elements(const char* name, std::uint64_t value, std::uint64_t wanted, const char* reason) {
    if (value != wanted)
      refuse(std::string(name) + " (" + number_of(value) + " elements) of workload '" + workload_ + "' " +
             reason + " (" + number_of(wanted) + ").");
    return *this;
  }
  PictureCheck& color(const char* name, const Color& given) {
    return in_range(name, double{given.red}, 0, 1)
        .in_range(name, double{given.green}, 0, 1)
        .in_range(name, double{given.blue}, 0, 1);
  }
  PictureCheck& picture(const Picture& given, std::uint64_t pixels) {
    const std::uint64_t wanted = std::uint64_t{given.width} * given.height;
    return size("Width", given.width, 1, longest_side)
        .size("Height", given.height, 1, longest_side)
        .size("Number of pixels", wanted, 1, most_pixels)
        .elements("Pixels", pixels, wanted, "are not those of its picture")
        .color("Background", given.background);
  }
  PictureCheck& view(const PictureView& given) {
    return finite("View x", double{given.x})
        .finite("View y", double{given.y})
        .above_zero("Scale", double{given.scale});
  }
  PictureCheck& strokes(std::uint64_t count) {
    if (count > most_strokes)
      refuse("Points and lines (" + number_of(count) + ") of workload '" + std::string(workload_) +
             "' exceed the limit (" + number_of(most_strokes) + ").");
    return *this;
  }

  bool failed() const { return !reason_.empty(); }
  Job job() && { return refused(workload_, workload_types::rendering, std::move(reason_)); }

 private:
  void refuse(std::string sentence) {
    if (reason_.empty()) reason_ = std::move(sentence);
  }
  const char* workload_;
  std::string reason_;
};

std::uint32_t packed(const Color& color) {
  const auto bits = [](float channel) {
    return static_cast<std::uint32_t>(std::lround(std::clamp(double{channel}, 0.0, 1.0) * 1023));
  };
  return bits(color.red) | bits(color.green) << 10 | bits(color.blue) << 20;
}

/// Returns an angle in turns, -1 to 1.
float turns_of(double angle) { return static_cast<float>(std::fmod(angle, full_turn) / full_turn); }

PointStyle style_of(const Picture& picture, const PictureView& view) {
  PointStyle style;
  style.middle_x = static_cast<float>(picture.width) / 2;
  style.middle_y = static_cast<float>(picture.height) / 2;
  style.center_x = view.x;
  style.center_y = view.y;
  style.scale = view.scale;
  return style;
}

/// Adds the steps that draw strokes. Without strokes, one pass draws the background.
void add_passes(Steps& steps, const Scratch<std::uint32_t>& strokes, std::uint64_t count,
                Write<std::uint32_t> pixels, const Picture& picture) {
  PicturePass pass;
  pass.width = picture.width;
  pass.height = picture.height;
  pass.background = packed(picture.background);
  pass.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, strokes_of_pass));
  const std::uint64_t tiles = tiles_of(pass), bins = bins_of(pass);
  const Scratch<std::uint32_t> masks(bins * words_of_mask(pass)), hits(words_of_hits(pass));
  // Channels between passes. Passes use two memories alternately, and read the channels of the pass
  // before.
  const std::uint64_t channels = 3 * std::uint64_t{picture.width} * picture.height;
  const bool has_passes = count > strokes_of_pass;
  const Scratch<std::uint32_t> sums[] = {
      Scratch<std::uint32_t>(has_passes ? channels : 0),
      Scratch<std::uint32_t>(count > 2 * std::uint64_t{strokes_of_pass} ? channels : 0)};
  const bool is_bound = can_be_bound(strokes.operand(Access::read)) &&
                        can_be_bound(hits.operand(Access::read)) &&
                        can_be_bound(sums[0].operand(Access::read)) && can_be_bound(pixels.operand());
  Read<std::uint32_t> before{std::span<const std::uint32_t>()};
  std::uint64_t first = 0;
  std::size_t turn = 0;
  do {
    pass.first = static_cast<std::uint32_t>(first);
    pass.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(count - first, strokes_of_pass));
    first += pass.count;
    pass.has_next = first < count ? 1 : 0;
    const Write<std::uint32_t> result = first < count ? Write<std::uint32_t>(sums[turn]) : pixels;
    if (pass.count != 0)
      steps.add(bins_kernel(), flat(squares_of_bins(pass) * words_of_mask(pass) * items_of_square), strokes,
                masks, pass);
    steps.add(tiles_kernel(), flat(bins * items_of_square), strokes, masks, hits, pass);
    steps.add(paint_kernel(is_bound, has_passes), flat(tiles * items_of_tile), strokes, hits, before, result,
              pass);
    if (first < count) before = Read<std::uint32_t>(sums[turn]);
    turn = 1 - turn;
  } while (first < count);
}

/// Makes the job of links and points. `style` has their looks.
Job draw_points(const char* workload, Read<float> positions, Read<float> values, Read<std::uint32_t> ends,
                Write<std::uint32_t> pixels, const Picture& picture, const PointStyle& style) {
  const std::uint64_t count = ends.size() / 2 + values.size();
  const Scratch<std::uint32_t> strokes(words_of_stroke * count);
  Steps steps;
  if (count != 0) steps.add(points_kernel(), flat(count), positions, values, ends, strokes, style);
  add_passes(steps, strokes, count, pixels, picture);
  return std::move(steps).job(workload, workload_types::rendering);
}

}  // namespace

Job render_heatmap(Read<float> positions, Read<float> intensities, Write<std::uint32_t> pixels,
                   Picture picture, HeatmapOptions options) {
  PictureCheck check("render_heatmap");
  check.picture(picture, pixels.size())
      .elements("Positions", positions.size(), 2 * intensities.size(), "are not two for each intensity")
      .strokes(intensities.size())
      .view(options.view)
      .finite("Time", options.time)
      .in_range("Spread", double{options.spread}, 0, farthest_pixel)
      .in_range("Opacity", double{options.opacity}, 0, 1)
      .color("Low color", options.low)
      .color("High color", options.high);
  if (check.failed()) return std::move(check).job();

  PointStyle style = style_of(picture, options.view);
  style.is_heat = 1;
  style.phase = turns_of(3 * std::fmod(options.time, full_turn));
  style.spread = options.spread;
  style.opacity = options.opacity;
  style.low = packed(options.low);
  style.high = packed(options.high);
  return draw_points("render_heatmap", positions, intensities,
                     Read<std::uint32_t>(std::span<const std::uint32_t>()), pixels, picture, style);
}

Job render_network(Read<float> positions, Read<float> ranks, Read<std::uint32_t> ends,
                   Write<std::uint32_t> pixels, Picture picture, NetworkPictureOptions options) {
  PictureCheck check("render_network");
  check.picture(picture, pixels.size())
      .elements("Positions", positions.size(), 2 * ranks.size(), "are not two for each rank")
      .elements("Ends", ends.size(), ends.size() / 2 * 2, "are not two for each link")
      .strokes(ranks.size() + ends.size() / 2)
      .view(options.view)
      .finite("Time", options.time)
      .in_range("Diameter", double{options.diameter}, 0, farthest_pixel)
      .in_range("Link width", double{options.link_width}, 0, 1024)
      .in_range("Link opacity", double{options.link_opacity}, 0, 1)
      .color("Low color", options.low)
      .color("High color", options.high)
      .color("Color of links", options.links);
  if (check.failed()) return std::move(check).job();

  PointStyle style = style_of(picture, options.view);
  style.phase = turns_of(options.time);
  style.diameter =
      static_cast<float>(std::min(double{options.diameter} * double{options.view.scale}, farthest_pixel));
  style.low = packed(options.low);
  style.high = packed(options.high);
  style.link_inner = std::max(options.link_width / 2 - 0.5f, 0.0f);
  style.link_outer = options.link_width / 2 + 0.5f;
  style.link_opacity = options.link_opacity * std::min(options.link_width, 1.0f);
  style.link_color = packed(options.links);
  return draw_points("render_network", positions, ranks, ends, pixels, picture, style);
}

Job render_timeline(Read<TimelinePoint> points, Write<std::uint32_t> pixels, Picture picture,
                    TimelinePictureOptions options) {
  PictureCheck check("render_timeline");
  const double length = double{options.last} - double{options.first};
  check.picture(picture, pixels.size())
      .finite("First time", double{options.first})
      .finite("Last time", double{options.last})
      .finite("Now", double{options.now})
      .above_zero("Time between the edges", length)
      .size("Lanes", options.lanes, 1, most_lanes)
      .in_range("Largest radius", double{options.largest}, 2, 1024)
      .above_zero("Full importance", double{options.full_importance})
      .color("Color of stripes", options.stripe)
      .color("Color of now", options.now_line);
  for (const Color& color : options.categories) check.color("Color of a category", color);
  const std::uint32_t stripes = (options.lanes + 1) / 2;
  check.strokes(stripes + 1 + points.size());
  if (check.failed()) return std::move(check).job();

  MomentStyle style;
  style.width = static_cast<float>(picture.width);
  style.height = static_cast<float>(picture.height);
  style.first = options.first;
  style.scale = static_cast<float>(std::min(picture.width / length, 0x1p100));
  style.now =
      static_cast<float>(std::clamp((double{options.now} - double{options.first}) / length * picture.width,
                                    -farthest_pixel, farthest_pixel));
  style.lanes = options.lanes;
  style.stripes = stripes;
  style.largest = options.largest;
  style.full_importance = options.full_importance;
  style.stripe_color = packed(options.stripe);
  style.now_color = packed(options.now_line);
  style.color0 = packed(options.categories[0]);
  style.color1 = packed(options.categories[1]);
  style.color2 = packed(options.categories[2]);
  style.color3 = packed(options.categories[3]);
  style.color4 = packed(options.categories[4]);
  style.color5 = packed(options.categories[5]);
  style.color6 = packed(options.categories[6]);
  style.color7 = packed(options.categories[7]);

  const std::uint64_t count = stripes + 1 + points.size();
  const Scratch<std::uint32_t> strokes(words_of_stroke * count);
  Steps steps;
  steps.add(moments_kernel(), flat(count), points, strokes, style);
  add_passes(steps, strokes, count, pixels, picture);
  return std::move(steps).job("render_timeline", workload_types::rendering);
}

}  // namespace wye::workloads
