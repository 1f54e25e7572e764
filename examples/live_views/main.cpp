// Moves a network, and draws it, its heat and a timeline as live views do. Prints the frames per
// second of each view and writes the last frames as PNG files. With --raw, writes the frames of one
// view to standard output, for example for ffplay.
#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/render.hpp>
#include <wye/workloads/timeline.hpp>
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "canvas.hpp"
#include "files.hpp"
#include "text.hpp"

namespace {

namespace workloads = wye::workloads;
using workloads::Picture;
using workloads::PictureView;

struct Options {
  std::uint32_t width = 1280;
  std::uint32_t height = 720;
  std::uint32_t frames = 240;
  std::uint32_t nodes = 1000;
  std::uint32_t links = 3000;
  std::string raw;
  std::string out = "live_views_report";
};

constexpr const char* usage =
    "live_views [--frames N] [--width N] [--height N] [--nodes N] [--links N] [--out DIR]\n"
    "           [--raw network|heatmap|timeline]\n"
    "  --raw: writes each frame of one view to standard output, four bytes for each pixel:\n"
    "         live_views --raw network | ffplay -f rawvideo -pixel_format rgba -video_size 1280x720 -\n";

/// Returns whether all arguments are valid.
bool read_arguments(int argc, char** argv, Options& options) {
  const std::pair<const char*, std::uint32_t*> numbers[] = {{"--width", &options.width},
                                                            {"--height", &options.height},
                                                            {"--frames", &options.frames},
                                                            {"--nodes", &options.nodes},
                                                            {"--links", &options.links}};
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string name = argv[i];
    if (name == "--raw") {
      options.raw = argv[i + 1];
    } else if (name == "--out") {
      options.out = argv[i + 1];
    } else {
      const auto* const number = std::find_if(std::begin(numbers), std::end(numbers),
                                              [&](const auto& n) { return name == n.first; });
      if (number == std::end(numbers) || !document_network::read_number(argv[i + 1], *number->second) ||
          *number->second == 0)
        return false;
    }
  }
  return options.raw.empty() || options.raw == "network" || options.raw == "heatmap" ||
         options.raw == "timeline";
}

/// A network of groups. Most links are within a group, and few nodes have many links.
struct Network {
  std::vector<std::uint32_t> ends;
  std::vector<float> ranks;
};

Network random_network(std::uint32_t nodes, std::uint32_t links) {
  constexpr std::uint32_t groups = 14;
  std::mt19937 random(4);
  std::uniform_real_distribution<double> part(0, 1);
  std::uniform_int_distribution<std::uint32_t> any_group(0, groups - 1);
  const auto node_of = [&](std::uint32_t group) {
    const auto members = static_cast<double>((nodes + groups - 1 - group) / groups);
    const auto member = static_cast<std::uint32_t>(members * std::pow(part(random), 3));
    return std::min(group + groups * member, nodes - 1);
  };
  Network network;
  std::vector<std::uint32_t> degrees(nodes);
  for (std::uint32_t i = 0; i < links; ++i) {
    const std::uint32_t group = any_group(random), other = part(random) < 0.97 ? group : any_group(random);
    const std::uint32_t from = i < nodes ? i : node_of(group), to = node_of(i < nodes ? i % groups : other);
    network.ends.insert(network.ends.end(), {from, to});
    ++degrees[from], ++degrees[to];
  }
  const double most = *std::max_element(degrees.begin(), degrees.end());
  for (const std::uint32_t degree : degrees)
    network.ranks.push_back(static_cast<float>(0.25 + 0.75 * std::sqrt(degree / most)));
  return network;
}

std::vector<workloads::Evidence> random_evidence(std::uint32_t count, float seconds) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> part(0, 1);
  std::vector<workloads::Evidence> evidence;
  for (std::uint32_t i = 0; i < count; ++i)
    evidence.push_back({.timestamp = part(random) * seconds,
                        .importance = std::pow(part(random), 4.0f),
                        .category = static_cast<std::uint32_t>(random() % 8),
                        .relevance = part(random)});
  return evidence;
}

/// Follows the extent of a network, slowly, so that a view does not jump.
class Camera {
 public:
  PictureView view(const Picture& picture, std::span<const float> positions) {
    float low[2] = {0, 0}, high[2] = {0, 0};
    for (std::size_t i = 0; i < positions.size(); ++i) {
      low[i % 2] = std::min(low[i % 2], positions[i]);
      high[i % 2] = std::max(high[i % 2], positions[i]);
    }
    const auto width = static_cast<float>(picture.width), height = static_cast<float>(picture.height);
    const PictureView fitting{.x = (low[0] + high[0]) / 2,
                              .y = (low[1] + high[1]) / 2,
                              .scale = 0.92f * std::min(width / std::max(high[0] - low[0], 1.0f),
                                                        height / std::max(high[1] - low[1], 1.0f))};
    const float share = begun_ ? 0.1f : 1.0f;
    begun_ = true;
    view_.x += share * (fitting.x - view_.x);
    view_.y += share * (fitting.y - view_.y);
    view_.scale += share * (fitting.scale - view_.scale);
    return view_;
  }

 private:
  PictureView view_;
  bool begun_ = false;
};

struct View {
  const char* name;
  std::vector<std::uint32_t> pixels;
  std::chrono::duration<double> seconds = {};
  std::string device = {};
};

int fail(const std::string& sentence) {
  std::fprintf(stderr, "live_views: %s\n", sentence.c_str());
  return 1;
}

std::string png_of(const View& view, const Picture& picture) {
  document_network::Canvas page(static_cast<int>(picture.width), static_cast<int>(picture.height));
  std::vector<std::uint32_t> colors;
  colors.reserve(view.pixels.size());
  for (const std::uint32_t pixel : view.pixels)
    colors.push_back((pixel & 255) << 16 | (pixel & 0xff00) | (pixel >> 16 & 255));
  page.image({0, 0}, colors, static_cast<int>(picture.width));
  return page.png();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!read_arguments(argc, argv, options)) return std::fputs(usage, stderr), 2;
  auto runtime = wye::Runtime::open();
  if (!runtime) return fail(runtime.error().describe());

  constexpr float frames_per_second = 60;
  const Picture picture{.width = options.width, .height = options.height};
  const float length = static_cast<float>(options.frames) / frames_per_second;
  const Network network = random_network(options.nodes, options.links);
  const auto by_node = workloads::network_links(options.nodes, network.ends);

  // The network and its layout stay on the device.
  wye::Array<float> positions = runtime->array(workloads::force_layout_start(options.nodes));
  wye::Array<float> state =
      runtime->array(std::vector<float>(workloads::force_layout_state_size(options.nodes)));
  const wye::Array<std::uint32_t> offsets = runtime->array(by_node.offsets);
  const wye::Array<std::uint32_t> targets = runtime->array(by_node.targets);
  const wye::Array<std::uint32_t> ends = runtime->array(network.ends);
  const wye::Array<float> ranks = runtime->array(network.ranks);
  const wye::Array<workloads::Evidence> evidence = runtime->array(random_evidence(options.nodes, length));
  wye::Array<workloads::TimelinePoint> points = runtime->array<workloads::TimelinePoint>(options.nodes);

  const std::vector<std::uint32_t> blank(std::size_t{options.width} * options.height);
  View views[] = {{"network", blank}, {"heatmap", blank}, {"timeline", blank}};
  auto& [of_network, of_heat, of_time] = views;
  Camera camera;
  for (std::uint32_t frame = 0; frame < options.frames; ++frame) {
    const float time = static_cast<float>(frame) / frames_per_second;
    // Runs the jobs of a frame, the last of which draws it.
    const auto draw = [&](View& view, std::vector<wye::Job> jobs) -> std::optional<std::string> {
      const auto begin = std::chrono::steady_clock::now();
      for (wye::Job& job : jobs) {
        const auto done = runtime->run(std::move(job));
        if (!done) return done.error().describe();
        view.device = done->device().name;
      }
      view.seconds += std::chrono::steady_clock::now() - begin;
      if (options.raw == view.name)
        if (std::fwrite(view.pixels.data(), 4, view.pixels.size(), stdout) != view.pixels.size())
          return "The frame cannot be written to standard output.";
      return std::nullopt;
    };
    PictureView view;
    {
      auto read = positions.read();
      if (!read) return fail(read.error().describe());
      view = camera.view(picture, *read);
    }
    if (auto wrong =
            draw(of_network,
                 {workloads::force_layout(offsets, targets, positions, state, {.gravity = 3}),
                  workloads::render_network(positions, ranks, ends, of_network.pixels, picture,
                                            {.view = view, .time = time, .diameter = 14 / view.scale})}))
      return fail(*wrong);
    if (auto wrong =
            draw(of_heat, {workloads::render_heatmap(positions, ranks, of_heat.pixels, picture,
                                                     {.view = view, .time = time, .opacity = 0.8f})}))
      return fail(*wrong);
    if (auto wrong = draw(of_time, {workloads::timeline(evidence, points, {.now = time, .decay = 1.5f}),
                                    workloads::render_timeline(points, of_time.pixels, picture,
                                                               {.last = length, .now = time})}))
      return fail(*wrong);
  }

  std::vector<document_network::File> files;
  for (const View& view : views) {
    std::fprintf(stderr, "%-8s %5.0f frames per second of %u x %u pixels on %s\n", view.name,
                 options.frames / view.seconds.count(), options.width, options.height, view.device.c_str());
    files.push_back({options.out + "/" + view.name + ".png", png_of(view, picture)});
    if (files.back().bytes.empty()) return fail("There is no memory for the picture.");
  }
  if (auto wrong = document_network::write_all(files)) return fail(*wrong);
  std::fprintf(stderr, "written to %s\n", options.out.c_str());
  return 0;
}
