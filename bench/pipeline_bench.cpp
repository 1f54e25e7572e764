// Two stages, the copy of an array to a device and a kernel on it, each as long as the other: the
// copies are to be hidden.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lane.hpp"

namespace {

using Number = std::uint32_t;
using Mix = wye::Kernel<wye::Read<Number>, wye::ReadWrite<Number>, Number>;

/// What an item does, a GPU of one processor does slowly. In CUDA C++ it is the text that the
/// stand-in for the driver knows.
const Mix& mix() {
  static const auto kernel = Mix::make({.name = "mix",
                                        .sources = {wye::Glsl{.text = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) readonly buffer X { uint from[]; };
layout(set = 0, binding = 1) buffer Y { uint to[]; };
layout(push_constant) uniform P { uint by; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i >= to.length()) return;
  for (uint k = 0; k < 64; ++k) to[i] = to[i] * 3u + from[i] + by;
})"},
                                                    wye::CudaCpp{.text = R"(
extern "C" __global__ void mix(wye_span<const unsigned> from, wye_span<unsigned> to, unsigned by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < to.size) to[i] = to[i] * 3u + from[i] + by;
})"}}});
  return *kernel;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Arrays, and a kernel whose grid makes it as long as the copy of an array.
class Pipeline {
 public:
  /// Returns the pipeline of a backend, the same one each time, so that all rows have the same
  /// grid; null if it has none.
  static Pipeline* of(const std::string& backend) {
    static std::map<std::string, std::optional<Pipeline>> all;
    const auto [at, is_new] = all.try_emplace(backend);
    if (is_new) {
      const char* driver = std::getenv("WYE_CUDA_DRIVER");
      auto runtime =
          wye::Runtime::open({.pool = {.backends = {backend}, .cuda_driver = driver ? driver : ""}});
      if (!runtime) return nullptr;
      at->second = Pipeline(std::move(*runtime));
      if (!at->second->calibrate()) at->second.reset();
    }
    return at->second ? &*at->second : nullptr;
  }

  /// Writes all arrays on the host, so that the next jobs copy them.
  bool write() {
    for (auto& array : from_) {
      auto view = array.write();
      if (!view) return false;
      std::fill(view->begin(), view->end(), ++count_);
    }
    return true;
  }
  /// Runs the jobs of arrays that `write` has written, and of arrays that are on the device. Return
  /// seconds; negative if a job failed.
  double copies() { return jobs(1); }
  double copies_and_kernels() { return jobs(items_); }
  double kernels() { return jobs(items_); }
  /// Runs the kernels while a thread copies as many bytes from host to host. Returns the seconds
  /// until both have completed. Both stages share caches, memory and the threads of a driver that
  /// emulates a GPU, as they do in the pipeline.
  double kernels_beside_copies() {
    const std::vector<std::vector<Number>> sources(from_.size(), std::vector<Number>(from_[0].size(), 1));
    std::vector<std::vector<Number>> targets = sources;
    const auto start = std::chrono::steady_clock::now();
    std::thread copying([&] {
      for (std::size_t i = 0; i < sources.size(); ++i)
        std::copy(sources[i].begin(), sources[i].end(), targets[i].begin());
    });
    const double computed = kernels();
    copying.join();
    benchmark::DoNotOptimize(targets.back().back());
    return computed < 0 ? computed : seconds_since(start);
  }

 private:
  explicit Pipeline(wye::Runtime runtime) : runtime_(std::move(runtime)) {
    for (std::size_t i = 0; i < wye_bench::sized(24, 3); ++i) {
      from_.push_back(runtime_.array<Number>(wye_bench::sized(1 << 20, 1 << 14)));
      to_.push_back(runtime_.array<Number>(wye_bench::sized(1 << 20, 1 << 14)));
    }
  }
  double jobs(std::uint64_t items) {
    std::vector<wye::Ticket> tickets;
    tickets.reserve(from_.size());
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < from_.size(); ++i)
      tickets.push_back(runtime_.submit(mix()(from_[i], to_[i], Number{1}).over({items})));
    if (!wye::wait_all(tickets)) return -1;
    return seconds_since(start);
  }
  /// Finds the grid with which the kernels take as long as the copies.
  bool calibrate() {
    if (!write() || copies() < 0) return false;  // builds the kernel, and makes the memory on the device
    double copying = 1e9, computing = 1e9;
    const std::uint64_t all = to_[0].size();
    items_ = std::max<std::uint64_t>(all / 64, 64);
    for (int i = 0; i < 3; ++i) {
      if (!write()) return false;
      copying = std::min(copying, copies());
      computing = std::min(computing, kernels());
    }
    const double nothing = copies();  // the jobs alone
    if (nothing < 0 || copying < 0 || computing < 0) return false;
    const double each = std::max(computing - nothing, 1e-9) / static_cast<double>(items_);
    const double wanted = std::max(copying - nothing, 1e-9) / each;
    items_ = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 64, all);
    return true;
  }

  wye::Runtime runtime_;
  std::vector<wye::Array<Number>> from_, to_;
  std::uint64_t items_ = 64;
  Number count_ = 0;
};

void pipelined(benchmark::State& state, const char* backend) {
  Pipeline* const pipeline = Pipeline::of(backend);
  if (!pipeline) return state.SkipWithError("no such device, or its jobs failed");
  for (auto _ : state) {
    const double seconds = pipeline->write() ? pipeline->copies_and_kernels() : -1;
    if (seconds < 0) return state.SkipWithError("failed");
    state.SetIterationTime(seconds);
  }
}
void longer_stage(benchmark::State& state, const char* backend) {
  Pipeline* const pipeline = Pipeline::of(backend);
  if (!pipeline) return state.SkipWithError("no such device, or its jobs failed");
  double copying = 0, computing = 0;
  for (auto _ : state) {
    const double copies = pipeline->write() ? pipeline->copies() : -1;
    const double kernels = pipeline->kernels();
    if (copies < 0 || kernels < 0) return state.SkipWithError("failed");
    state.SetIterationTime(std::max(copies, kernels));
    copying += copies;
    computing += kernels;
  }
  state.SetLabel("copies / kernels = " + std::to_string(copying / computing));
}

void copies_beside(benchmark::State& state, const char* backend) {
  Pipeline* const pipeline = Pipeline::of(backend);
  if (!pipeline) return state.SkipWithError("no such device, or its jobs failed");
  for (auto _ : state) {
    const double seconds = pipeline->kernels_beside_copies();
    if (seconds < 0) return state.SkipWithError("failed");
    state.SetIterationTime(seconds);
  }
}

void rows(benchmark::internal::Benchmark* row) {
  row->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(0.3);
}
BENCHMARK_CAPTURE(pipelined, vulkan, "vulkan")->Name("pipeline_vulkan/wye")->Apply(rows);
BENCHMARK_CAPTURE(longer_stage, vulkan, "vulkan")->Name("pipeline_vulkan/longer_stage")->Apply(rows);
BENCHMARK_CAPTURE(copies_beside, vulkan, "vulkan")->Name("pipeline_vulkan/copies_beside")->Apply(rows);
BENCHMARK_CAPTURE(pipelined, cuda, "cuda")->Name("pipeline_cuda/wye")->Apply(rows);
BENCHMARK_CAPTURE(longer_stage, cuda, "cuda")->Name("pipeline_cuda/longer_stage")->Apply(rows);
BENCHMARK_CAPTURE(copies_beside, cuda, "cuda")->Name("pipeline_cuda/copies_beside")->Apply(rows);

}  // namespace
