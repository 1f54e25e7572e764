// The picture of a network by Cairo, on one thread: each link a line, each node a disc.
#include <benchmark/benchmark.h>
#include <cairo.h>

#include <cstddef>

#include "peers/network_scene.hpp"

namespace {

using wye_bench::NetworkScene;

void by_cairo(benchmark::State& state) {
  const NetworkScene scene = wye_bench::network_scene();
  cairo_surface_t* const surface =
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, NetworkScene::width, NetworkScene::height);
  cairo_t* const context = cairo_create(surface);
  cairo_set_line_cap(context, CAIRO_LINE_CAP_ROUND);
  const auto x = [&](std::size_t node) {
    return NetworkScene::width / 2.0 + double{NetworkScene::scale} * double{scene.positions[2 * node]};
  };
  const auto y = [&](std::size_t node) {
    return NetworkScene::height / 2.0 + double{NetworkScene::scale} * double{scene.positions[2 * node + 1]};
  };
  for (auto _ : state) {
    cairo_set_source_rgb(context, 1, 1, 1);
    cairo_paint(context);
    cairo_set_line_width(context, 1);
    cairo_set_source_rgba(context, 0.42, 0.44, 0.49, 0.3);
    for (std::size_t i = 0; i < scene.ends.size(); i += 2) {
      cairo_move_to(context, x(scene.ends[i]), y(scene.ends[i]));
      cairo_line_to(context, x(scene.ends[i + 1]), y(scene.ends[i + 1]));
      cairo_stroke(context);
    }
    for (std::size_t i = 0; i < scene.ranks.size(); ++i) {
      const double rank = double{scene.ranks[i]};
      cairo_set_source_rgba(context, rank, rank, 1 - rank, rank);
      cairo_arc(context, x(i), y(i), 0.5 * double{NetworkScene::scale}, 0, 6.283185307179586);
      cairo_fill(context);
    }
    cairo_surface_flush(surface);
    benchmark::DoNotOptimize(cairo_image_surface_get_data(surface));
  }
  cairo_destroy(context);
  cairo_surface_destroy(surface);
}
BENCHMARK(by_cairo)->Name("render_network_cpu/cairo")->UseRealTime();

}  // namespace
