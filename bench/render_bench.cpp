// Pictures of a network, with and without a step of its layout.
#include <benchmark/benchmark.h>
#include <wye/workloads/force_layout.hpp>
#include <wye/workloads/render.hpp>
#include <wye/wye.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "peers/network_scene.hpp"

namespace {

namespace workloads = wye::workloads;
using wye_bench::NetworkScene;

constexpr workloads::Picture picture{.width = NetworkScene::width, .height = NetworkScene::height};
const workloads::NetworkPictureOptions options{.view = {.scale = NetworkScene::scale}};

/// Draws frames on a device whose memory holds the network. Each frame is copied to the host. The
/// frames before those that are timed compile the kernels and choose among their variants.
void frames(benchmark::State& state, const char* backend, bool moves) {
  auto runtime = wye::Runtime::open({.pool = {.backends = {backend}}});
  if (!runtime) {
    state.SkipWithError(runtime.error().sentence().c_str());
    return;
  }
  const NetworkScene scene = wye_bench::network_scene();
  const auto links = workloads::network_links(NetworkScene::nodes, scene.ends);
  const std::vector<float> zeros(workloads::force_layout_state_size(NetworkScene::nodes));
  wye::Array<float> positions = runtime->array(scene.positions), layout = runtime->array(zeros);
  const wye::Array<float> ranks = runtime->array(scene.ranks);
  const wye::Array<std::uint32_t> ends = runtime->array(scene.ends), offsets = runtime->array(links.offsets),
                                  targets = runtime->array(links.targets);
  std::vector<std::uint32_t> pixels(std::size_t{NetworkScene::width} * NetworkScene::height);
  const wye::JobOptions on{.on = {backend}};
  const auto draw_frame = [&] {
    if (moves) {
      // Small steps keep the network in the picture.
      const auto moved = runtime->run(workloads::force_layout(offsets, targets, positions, layout,
                                                              {.repulsion = 0.01f, .tolerance = 1e-6f}),
                                      on);
      if (!moved) state.SkipWithError(moved.error().sentence().c_str());
    }
    const auto drawn =
        runtime->run(workloads::render_network(positions, ranks, ends, pixels, picture, options), on);
    if (!drawn) state.SkipWithError(drawn.error().sentence().c_str());
  };
  for (int frame = 0; frame < 100; ++frame) draw_frame();
  for (auto _ : state) draw_frame();
}
BENCHMARK_CAPTURE(frames, cpu, "cpu", true)->Name("network_frame_cpu/wye")->UseRealTime();
BENCHMARK_CAPTURE(frames, vulkan, "vulkan", true)->Name("network_frame_vulkan/wye")->UseRealTime();
BENCHMARK_CAPTURE(frames, picture, "cpu", false)->Name("render_network_cpu/wye")->UseRealTime();

}  // namespace
