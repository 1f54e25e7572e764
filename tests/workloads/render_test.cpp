#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/render.hpp>
#include <wye/workloads/timeline.hpp>

#include <algorithm>
#include <cmath>

#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::Color;
using workloads::HeatmapOptions;
using workloads::NetworkPictureOptions;
using workloads::Picture;
using workloads::TimelinePictureOptions;
using workloads::TimelinePoint;
namespace reference = wye::workloads::reference;

namespace {

using Pixels = std::vector<std::uint32_t>;

Pixels unpainted(const Picture& picture) {
  return poison<std::uint32_t>(std::size_t{picture.width} * picture.height);
}

std::uint32_t channel_of(std::uint32_t pixel, std::size_t channel) { return pixel >> 8 * channel & 255; }

/// Returns "" if each channel is within 2 of the exact picture, and each pixel is opaque.
std::string difference_of_pixels(const Pixels& got, const std::vector<double>& exact,
                                 const Picture& picture) {
  if (3 * got.size() != exact.size()) return "sizes differ";
  for (std::size_t i = 0; i < got.size(); ++i)
    for (std::size_t c = 0; c < 4; ++c) {
      const double wanted = c == 3 ? 255.0 : exact[3 * i + c], bound = c == 3 ? 0.0 : 2.0;
      if (!(std::abs(channel_of(got[i], c) - wanted) <= bound))
        return "channel " + std::to_string(c) + " of pixel " + std::to_string(i % picture.width) + ", " +
               std::to_string(i / picture.width) + " is " + std::to_string(channel_of(got[i], c)) +
               " instead of " + std::to_string(wanted);
    }
  return "";
}

/// Points around the centre of the view, with values of which some are beyond 0 and 1.
struct Scene {
  std::vector<float> positions, values;
  std::vector<std::uint32_t> ends;
};
Scene scene(std::size_t points, std::size_t links, std::uint32_t seed, float width = 100) {
  std::mt19937 random(seed);
  Scene made{.positions = numbers(2 * points, seed + 1, -width / 2, width / 2),
             .values = numbers(points, seed + 2, -0.1f, 1.1f),
             .ends = std::vector<std::uint32_t>(2 * links)};
  // Some links have nodes that do not exist.
  for (std::uint32_t& end : made.ends) end = static_cast<std::uint32_t>(random() % (points + 2));
  return made;
}

std::vector<TimelinePoint> moments(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto places = numbers(3 * count, seed + 1, -0.1f, 1.1f);
  std::vector<TimelinePoint> made;
  for (std::size_t i = 0; i < count; ++i)
    made.push_back({.position = places[3 * i],
                    .importance = places[3 * i + 1],
                    .relevance = places[3 * i + 2],
                    .category = static_cast<std::uint32_t>(random() % 14)});
  return made;
}

Pixels heatmap(const Scene& scene, const Picture& picture, const HeatmapOptions& options,
               const std::string& leg) {
  Pixels pixels = unpainted(picture);
  run(workloads::render_heatmap(scene.positions, scene.values, pixels, picture, options), leg);
  return pixels;
}
Pixels network_picture(const Scene& scene, const Picture& picture, const NetworkPictureOptions& options,
                       const std::string& leg) {
  Pixels pixels = unpainted(picture);
  run(workloads::render_network(scene.positions, scene.values, scene.ends, pixels, picture, options), leg);
  return pixels;
}
Pixels timeline_picture(const std::vector<TimelinePoint>& points, const Picture& picture,
                        const TimelinePictureOptions& options, const std::string& leg) {
  Pixels pixels = unpainted(picture);
  run(workloads::render_timeline(points, pixels, picture, options), leg);
  return pixels;
}

void check_heatmap(const Scene& scene, const Picture& picture, const HeatmapOptions& options,
                   const std::string& leg) {
  CHECK(difference_of_pixels(heatmap(scene, picture, options, leg),
                             reference::render_heatmap(scene.positions, scene.values, picture, options),
                             picture) == "");
}
void check_network(const Scene& scene, const Picture& picture, const NetworkPictureOptions& options,
                   const std::string& leg) {
  CHECK(difference_of_pixels(
            network_picture(scene, picture, options, leg),
            reference::render_network(scene.positions, scene.values, scene.ends, picture, options),
            picture) == "");
}
void check_timeline(const std::vector<TimelinePoint>& points, const Picture& picture,
                    const TimelinePictureOptions& options, const std::string& leg) {
  CHECK(difference_of_pixels(timeline_picture(points, picture, options, leg),
                             reference::render_timeline(points, picture, options), picture) == "");
}

/// Whether all pixels are the same.
bool is_plain(const Pixels& pixels) {
  return std::all_of(pixels.begin(), pixels.end(), [&](std::uint32_t pixel) { return pixel == pixels[0]; });
}

}  // namespace

TEST_CASE("pictures of any size are within 2 of the exact channels", "[workloads][render]") {
  const Picture pictures[] = {{1, 1},   {2, 3},   {15, 16}, {16, 17},  {17, 15},
                              {33, 31}, {127, 1}, {1, 129}, {129, 65}, {300, 137}};
  for (const std::string& leg : legs())
    for (const Picture& picture : pictures) {
      INFO(leg << ", " << picture.width << " x " << picture.height);
      const Scene made = scene(60, 90, picture.width);
      const auto scale = static_cast<float>(std::max(picture.width, picture.height)) / 90;
      check_heatmap(made, picture, {.view = {.scale = scale}, .time = 3.5, .spread = 0.2f}, leg);
      check_network(made, picture, {.view = {.x = 3, .y = -4, .scale = scale}, .time = 2, .diameter = 6},
                    leg);
      check_timeline(moments(80, picture.height), picture, {.now = 0.7f, .lanes = 5}, leg);
    }
}

TEST_CASE("random pictures are within 2 of the exact channels", "[workloads][render][subgroups][native]") {
  std::mt19937 random(21);
  const auto below = [&](std::size_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  const auto share = [&] { return static_cast<float>(random() >> 8) * 0x1p-24f; };
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const Picture picture{.width = 1 + below(i % 50 == 0 ? 400 : 60),
                          .height = 1 + below(i % 50 == 0 ? 300 : 50),
                          .background = {share(), share(), share()}};
    const std::uint32_t seed = static_cast<std::uint32_t>(random()), points = below(i % 50 == 0 ? 300 : 40),
                        links = below(60);
    const float width = std::exp2(static_cast<float>(below(12)));
    const workloads::PictureView view{
        .x = 0.1f * width * share(), .y = 0.1f * width * share(), .scale = (10 + 100 * share()) / width};
    const std::string& leg = legs()[random() % legs().size()];
    INFO(leg << ", " << picture.width << " x " << picture.height << ", " << points << " points, width "
             << width << ", seed " << seed);
    const Scene made = scene(points, points == 0 ? 0 : links, seed, width);
    const double time = 1000.0 * double{share()};
    if (i % 3 == 0)
      check_heatmap(made, picture, {.view = view, .time = time, .spread = share(), .opacity = share()}, leg);
    else if (i % 3 == 1)
      check_network(made, picture,
                    {.view = view,
                     .time = time,
                     .diameter = 20 * share() / view.scale,
                     .link_width = i % 2 == 0 ? 2 * share() : 20 * share(),
                     .link_opacity = share(),
                     .links = {share(), share(), share()}},
                    leg);
    else
      check_timeline(
          moments(points, seed), picture,
          {.first = -share(), .last = 0.5f + share(), .lanes = 1 + below(12), .largest = 2 + 20 * share()},
          leg);
  }
}

TEST_CASE("pictures without points are the background, all of it", "[workloads][render]") {
  const Picture picture{.width = 130, .height = 19, .background = {1, 0.5f, 0}};
  for (const std::string& leg : legs()) {
    INFO(leg);
    for (const Pixels& pixels : {heatmap({}, picture, {}, leg), network_picture({}, picture, {}, leg)}) {
      CHECK(is_plain(pixels));
      CHECK(channel_of(pixels[0], 0) == 255);
      CHECK(std::abs(int(channel_of(pixels[0], 1)) - 127) <= 1);
      CHECK(channel_of(pixels[0], 2) == 0);
      CHECK(channel_of(pixels[0], 3) == 255);
    }
    check_timeline({}, picture, {}, leg);
  }
}

TEST_CASE("points without a usable position or value are not drawn", "[workloads][render]") {
  const Picture picture{.width = 70, .height = 50};
  const float bad[] = {undefined, infinity, -infinity, 3e38f, 0x1.1p20f};
  for (const std::string& leg : legs()) {
    INFO(leg);
    Scene made = scene(100, 150, 3);
    for (std::size_t i = 0; i < 40; ++i) made.positions[5 * i] = bad[i % 5];
    for (std::size_t i = 50; i < 100; i += 7) made.values[i] = bad[i % 3];
    check_heatmap(made, picture, {}, leg);
    check_network(made, picture, {.diameter = 9}, leg);

    Scene none = scene(100, 0, 4);
    for (float& value : none.values) value = undefined;
    CHECK(is_plain(heatmap(none, picture, {}, leg)));
    CHECK(is_plain(network_picture(none, picture, {.diameter = 5}, leg)));

    auto points = moments(100, 5);
    for (std::size_t i = 0; i < 100; i += 4) {
      points[i].position = i % 3 == 0 ? bad[i % 5] : points[i].position;
      points[i].importance = i % 3 == 1 ? bad[i % 3] : points[i].importance;
      points[i].relevance = i % 3 == 2 ? bad[i % 3] : points[i].relevance;
    }
    check_timeline(points, picture, {.lanes = 3}, leg);
  }
}

TEST_CASE("pictures show the part of the plane that the view has, at any scale", "[workloads][render]") {
  const Picture picture{.width = 61, .height = 47};
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Scene made = scene(50, 60, 6);
    CHECK(is_plain(heatmap(made, picture, {.view = {.x = 1000, .y = 1000}}, leg)));
    CHECK(is_plain(network_picture(made, picture, {.view = {.x = -1000, .y = 1000}}, leg)));
    check_network(made, picture, {.view = {.scale = 1e-30f}, .diameter = 0}, leg);
    check_network(made, picture, {.view = {.scale = 20}, .diameter = 40}, leg);
    // Only the first node is in the picture. Its disc covers all of it.
    Scene one{.positions = {0, 0, 3, 3}, .values = {1, 1}, .ends = {}};
    const NetworkPictureOptions near{.view = {.scale = 1e30f}, .diameter = 1};
    const Pixels covered = network_picture(one, picture, near, leg);
    CHECK(is_plain(covered));
    CHECK(difference_of_pixels(covered,
                               reference::render_network(one.positions, one.values, {}, picture, near),
                               picture) == "");
    const Pixels far = network_picture(made, picture, {.view = {.x = 7, .scale = 1e4f}}, leg);
    CHECK(equal_bits(far, network_picture(made, picture, {.view = {.x = 7, .scale = 1e4f}}, leg)));
    for (const std::uint32_t pixel : far) CHECK(channel_of(pixel, 3) == 255);
  }
}

TEST_CASE("pictures change with time, and are the same at the same time", "[workloads][render]") {
  const Picture picture{.width = 90, .height = 60};
  const Scene made = scene(80, 50, 7);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const auto heat = [&](double time) { return heatmap(made, picture, {.time = time}, leg); };
    const auto net = [&](double time) {
      return network_picture(made, picture, {.time = time, .diameter = 8}, leg);
    };
    CHECK(equal_bits(heat(1), heat(1)));
    CHECK(equal_bits(net(1), net(1)));
    CHECK_FALSE(equal_bits(heat(1), heat(1.3)));
    CHECK_FALSE(equal_bits(net(1), net(2)));
    for (const double time : {-5.0, 1e3, 1e6}) {
      check_heatmap(made, picture, {.time = time}, leg);
      check_network(made, picture, {.time = time, .diameter = 8}, leg);
    }
    const auto points = moments(30, 8);
    CHECK_FALSE(equal_bits(timeline_picture(points, picture, {.now = 0.2f}, leg),
                           timeline_picture(points, picture, {.now = 0.8f}, leg)));
  }
}

TEST_CASE("later points and links are over earlier ones, in several passes too", "[workloads][render]") {
  const Picture picture{.width = 150, .height = 140};
  for (const std::string& leg : legs())
    for (const std::size_t links : {2000u, 3296u, 3297u, 9000u}) {
      INFO(leg << ", " << links << " links");
      const Scene made = scene(800, links, 9);
      const NetworkPictureOptions options{.diameter = 5, .link_opacity = 0.05f};
      check_network(made, picture, options, leg);
    }
}

TEST_CASE("a picture of a laid out network of 1,000 nodes has its bound", "[workloads][render][large]") {
  const Picture picture{.width = 1280, .height = 720};
  Scene made = scene(1000, 3000, 10);
  made.positions = workloads::force_layout_start(1000);
  const NetworkPictureOptions options{.view = {.scale = 11}, .time = 1, .diameter = 1};
  const auto exact = reference::render_network(made.positions, made.values, made.ends, picture, options);
  for (const std::string& leg : legs()) {
    INFO(leg);
    CHECK(difference_of_pixels(network_picture(made, picture, options, leg), exact, picture) == "");
  }
}

TEST_CASE("pictures draw arrays, with positions of a layout", "[workloads][render]") {
  const Picture picture{.width = 64, .height = 64};
  const Scene made = scene(50, 70, 11);
  for (const std::string& leg : legs()) {
    INFO(leg);
    const Array<float> positions = the_runtime().array(made.positions),
                       ranks = the_runtime().array(made.values);
    const Array<std::uint32_t> ends = the_runtime().array(made.ends);
    Pixels pixels = unpainted(picture);
    run(workloads::render_network(positions, ranks, ends, pixels, picture, {.diameter = 4}), leg);
    CHECK(equal_bits(pixels, network_picture(made, picture, {.diameter = 4}, leg)));
  }
}

TEST_CASE("pictures refuse sizes and options out of range", "[workloads][render]") {
  const Scene made = scene(4, 3, 12);
  Pixels pixels(12);
  const Picture picture{.width = 4, .height = 3};
  const auto of_heat = [&](const Picture& asked, const HeatmapOptions& options = {}) {
    const Job job = workloads::render_heatmap(made.positions, made.values, pixels, asked, options);
    REQUIRE(job.error());
    CHECK(*job.error() == Errc::invalid_argument);
    return refusal(job);
  };
  CHECK(of_heat({0, 3}) == "Width (0) of workload 'render_heatmap' is not between 1 and 16384.");
  CHECK(of_heat({4, 0}) == "Height (0) of workload 'render_heatmap' is not between 1 and 16384.");
  CHECK(of_heat({16385, 3}) == "Width (16385) of workload 'render_heatmap' is not between 1 and 16384.");
  CHECK(of_heat({16384, 16384}) ==
        "Number of pixels (268435456) of workload 'render_heatmap' is not between 1 and 134217728.");
  CHECK(of_heat({4, 4}) ==
        "Pixels (12 elements) of workload 'render_heatmap' are not those of its picture (16).");
  CHECK(of_heat({.width = 4, .height = 3, .background = {2, 0, 0}}) ==
        "Background (2.000000) of workload 'render_heatmap' is not between 0.000000 and 1.000000.");
  CHECK(of_heat(picture, {.view = {.scale = 0}}) ==
        "Scale (0.000000) of workload 'render_heatmap' is not finite and above 0.");
  CHECK(of_heat(picture, {.view = {.x = undefined}}) ==
        "View x (nan) of workload 'render_heatmap' is not finite.");
  CHECK(of_heat(picture, {.time = double{infinity}}) ==
        "Time (inf) of workload 'render_heatmap' is not finite.");
  CHECK(of_heat(picture, {.opacity = -1}) ==
        "Opacity (-1.000000) of workload 'render_heatmap' is not between 0.000000 and 1.000000.");

  const std::span<const float> positions(made.positions), ranks(made.values);
  const std::span<const std::uint32_t> ends(made.ends);
  const auto of_network = [&](const NetworkPictureOptions& options) {
    return refusal(workloads::render_network(positions, ranks, ends, pixels, picture, options));
  };
  CHECK(refusal(workloads::render_network(positions.first(7), ranks, ends, pixels, picture)) ==
        "Positions (7 elements) of workload 'render_network' are not two for each rank (8).");
  CHECK(refusal(workloads::render_network(positions, ranks, ends.first(5), pixels, picture)) ==
        "Ends (5 elements) of workload 'render_network' are not two for each link (4).");
  CHECK(of_network({.diameter = -1}) ==
        "Diameter (-1.000000) of workload 'render_network' is not between 0.000000 and 1048576.000000.");
  CHECK(of_network({.link_width = undefined}) ==
        "Link width (nan) of workload 'render_network' is not between 0.000000 and 1024.000000.");
  const std::vector<std::uint32_t> many(2u << 20);
  CHECK(refusal(workloads::render_network(positions, ranks, many, pixels, picture)) ==
        "Points and lines (1048580) of workload 'render_network' exceed the limit (1048576).");

  const auto points = moments(4, 13);
  const auto of_timeline = [&](const TimelinePictureOptions& options) {
    return refusal(workloads::render_timeline(points, pixels, picture, options));
  };
  CHECK(of_timeline({.first = 1, .last = 1}) ==
        "Time between the edges (0.000000) of workload 'render_timeline' is not finite and above 0.");
  CHECK(of_timeline({.lanes = 0}) == "Lanes (0) of workload 'render_timeline' is not between 1 and 256.");
  CHECK(of_timeline({.largest = 1}) ==
        "Largest radius (1.000000) of workload 'render_timeline' is not between 2.000000 and 1024.000000.");
  CHECK(of_timeline({.full_importance = 0}) ==
        "Full importance (0.000000) of workload 'render_timeline' is not finite and above 0.");
}
