// The cost that wye adds to a dispatch, compared with hand-written Vulkan.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "lane.hpp"
#include "peers/raw_vulkan.hpp"

namespace {

constexpr char glsl[] = R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() { uint i = gl_GlobalInvocationID.x; if (i < x.length()) x[i] *= s; })";
constexpr std::uint64_t count = 64;
constexpr float factor = 1.0000001f;

std::vector<float> values(std::uint64_t n) {
  std::vector<float> v(n);
  for (std::uint64_t i = 0; i < n; ++i) v[i] = 0.5f + static_cast<float>(i % 977) * 0.001f;
  return v;
}

const wye::Kernel<wye::ReadWrite<float>, float>& kernel() {
  static const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make(
      {.name = "scale", .sources = {wye::Glsl{.text = glsl}}});
  return *scale;
}

auto open_lane(benchmark::State& state, std::uint64_t n = count) {
  return wye_bench::Lane<float>::open(
      state, "vulkan", kernel(), factor, [](float x, float s) { return x * s; }, n);
}

std::unique_ptr<wye_bench::RawVulkan> raw(benchmark::State& state, std::uint32_t dispatches) {
  auto peer = wye_bench::RawVulkan::open(glsl, count * sizeof(float));
  if (!peer) return state.SkipWithError("no Vulkan device"), nullptr;
  const auto v = values(count);
  std::memcpy(peer->data(), v.data(), count * sizeof(float));
  peer->record(dispatches, factor);
  peer->submit_and_wait();
  return peer;
}

void dispatch_sync_wye(benchmark::State& state) {
  if (auto lane = open_lane(state)) lane->dispatch_and_wait(state);
}
BENCHMARK(dispatch_sync_wye)->Name("dispatch_sync/wye")->UseRealTime()->MinTime(0.3);

void dispatch_sync_raw(benchmark::State& state) {
  auto peer = raw(state, 1);
  if (!peer) return;
  for (auto _ : state)
    if (!peer->submit_and_wait()) state.SkipWithError("failed");
}
BENCHMARK(dispatch_sync_raw)->Name("dispatch_sync/raw_vulkan")->UseRealTime()->MinTime(0.3);

// The same through a job: placement, lease, cache, ticket.
void dispatch_job_wye(benchmark::State& state) {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (!runtime) return state.SkipWithError("no Vulkan device");
  auto buffer = runtime->devices()[0].buffer<float>(count).value();
  for (auto _ : state)
    if (!runtime->run(kernel()(buffer, factor))) state.SkipWithError("failed");
}
BENCHMARK(dispatch_job_wye)->Name("dispatch_job/wye")->UseRealTime()->MinTime(0.3);

void dispatch_job_raw(benchmark::State& state) { dispatch_sync_raw(state); }
BENCHMARK(dispatch_job_raw)->Name("dispatch_job/raw_vulkan")->UseRealTime()->MinTime(0.3);

constexpr int batch = 10'000;

void dispatch_batch_wye(benchmark::State& state) {
  if (auto lane = open_lane(state)) lane->dispatch_and_wait(state, batch);
}
BENCHMARK(dispatch_batch_wye)->Name("dispatch_batch/wye")->UseRealTime()->Unit(benchmark::kMillisecond);

void dispatch_batch_raw(benchmark::State& state) {
  auto peer = raw(state, batch);
  if (!peer) return;
  for (auto _ : state) {
    peer->record(batch, factor);  // wye records each time too
    if (!peer->submit_and_wait()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK(dispatch_batch_raw)
    ->Name("dispatch_batch/raw_vulkan")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// The same dispatches as jobs without order, each on memory of its own; the peer has them in one
// command buffer.

void dispatch_jobs_wye(benchmark::State& state) {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"vulkan"}}});
  if (!runtime) return state.SkipWithError("no Vulkan device");
  const std::size_t jobs = wye_bench::sized(batch, 100);
  std::vector<wye::Buffer> buffers;
  std::vector<wye::Ticket> tickets;
  buffers.reserve(jobs);
  tickets.reserve(jobs);
  for (std::size_t i = 0; i < jobs; ++i)
    buffers.push_back(runtime->devices()[0].buffer<float>(count).value());
  for (auto _ : state) {
    for (const wye::Buffer& buffer : buffers) tickets.push_back(runtime->submit(kernel()(buffer, factor)));
    if (!wye::wait_all(tickets)) state.SkipWithError("failed");
    tickets.clear();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(jobs));
}
BENCHMARK(dispatch_jobs_wye)->Name("dispatch_jobs_x10000/wye")->UseRealTime()->Unit(benchmark::kMillisecond);

void dispatch_jobs_raw(benchmark::State& state) {
  const auto jobs = static_cast<std::uint32_t>(wye_bench::sized(batch, 100));
  auto peer = raw(state, jobs);
  if (!peer) return;
  for (auto _ : state) {
    peer->record(jobs, factor);
    if (!peer->submit_and_wait()) state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * jobs);
}
BENCHMARK(dispatch_jobs_raw)
    ->Name("dispatch_jobs_x10000/raw_vulkan")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Requests with host memory of their own: those that wait share submissions and launches, or none
// does.

void small_requests(benchmark::State& state, std::uint32_t batch_limit) {
  auto runtime =
      wye::Runtime::open({.pool = {.backends = {"vulkan"}}, .scheduler = {.batch_limit = batch_limit}});
  if (!runtime) return state.SkipWithError("no Vulkan device");
  const auto scale = wye::Kernel<wye::ReadWrite<float>, float>::make({.name = "scale",
                                                                      .sources = {wye::Glsl{R"(#version 450
layout(local_size_x = 64) in;
layout(set = 0, binding = 0) buffer X { float x[]; };
layout(push_constant) uniform P { float s; };
void main() {
  const uint i = gl_GlobalInvocationID.z * 64 + gl_GlobalInvocationID.x;
  if (i < x.length()) x[i] *= s;
})"}},
                                                                      .batchable = {0}});
  const std::size_t requests = wye_bench::sized(1000, 50);
  std::vector<std::vector<float>> memory(requests, values(count));
  std::vector<wye::Ticket> tickets;
  tickets.reserve(requests);
  for (auto _ : state) {
    for (std::vector<float>& x : memory) tickets.push_back(runtime->submit((*scale)(x, factor)));
    if (!wye::wait_all(tickets)) state.SkipWithError("failed");
    tickets.clear();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(requests));
}
BENCHMARK_CAPTURE(small_requests, batches, 64u)
    ->Name("small_requests_x1000/wye")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(small_requests, alone, 1u)
    ->Name("small_requests_x1000/without_batches")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

constexpr std::uint64_t roundtrip = 16u << 20;  // floats: 64 MiB

void roundtrip_wye(benchmark::State& state) {
  if (auto lane = open_lane(state, roundtrip)) lane->go_and_return(state);
}
BENCHMARK(roundtrip_wye)->Name("roundtrip_64MiB/wye")->UseRealTime()->Unit(benchmark::kMillisecond);

void roundtrip_copies(benchmark::State& state) {
  const auto source = values(roundtrip);
  std::vector<float> middle(roundtrip, 1.0f), target(roundtrip, 1.0f);
  for (auto _ : state) {
    std::memcpy(middle.data(), source.data(), roundtrip * sizeof(float));
    benchmark::DoNotOptimize(middle.data());
    std::memcpy(target.data(), middle.data(), roundtrip * sizeof(float));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(roundtrip * sizeof(float)) * 2);
}
BENCHMARK(roundtrip_copies)->Name("roundtrip_64MiB/two_copies")->UseRealTime()->Unit(benchmark::kMillisecond);

// A kernel that the process already used: the lookup and the dispatch. Each thread has a lane of
// its own on one device.

/// For all threads of a benchmark.
struct Shared {
  std::optional<wye::ContextPool> pool;
  std::optional<wye::ShaderCache> cache;

  Shared() {
    auto opened = wye::ContextPool::open({.backends = {"vulkan"}});
    if (!opened) return;
    pool = std::move(*opened);
    cache = wye::ShaderCache::open().value();
  }
};

/// `find` gives the kernel, by whatever there is in the place of use.
template <class Find>
void second_use(benchmark::State& state, Find find) {
  static Shared shared;
  if (!shared.pool) return state.SkipWithError("no Vulkan device");
  auto lease = shared.pool->lease().value();
  auto buffer = lease.buffer<float>(count).value();
  lease.upload(values(count), buffer);
  lease.wait().value();
  const auto arguments = wye::arguments(buffer, factor);
  for (auto _ : state) {
    const auto executable = shared.cache->find_or_build(find(), lease.device());
    lease.dispatch(*executable, arguments);
    if (!lease.wait()) state.SkipWithError("failed");
  }
}

void second_use_wye(benchmark::State& state) {
  second_use(state, []() -> decltype(auto) { return kernel(); });
}
/// An equal source in another object.
void second_use_of_text_wye(benchmark::State& state) {
  second_use(state, [] {
    return wye::Kernel<wye::ReadWrite<float>, float>::make(
               {.name = "scale", .sources = {wye::Glsl{.text = glsl}}})
        .value();
  });
}
/// The pipeline is there, and everything recorded.
void second_use_raw(benchmark::State& state) {
  static const auto device = wye_bench::RawVulkan::open(glsl, count * sizeof(float));
  const auto peer = device ? device->beside(glsl, count * sizeof(float)) : nullptr;
  if (!peer) return state.SkipWithError("no Vulkan device");
  const auto v = values(count);
  std::memcpy(peer->data(), v.data(), count * sizeof(float));
  peer->record(1, factor);
  for (auto _ : state)
    if (!peer->submit_and_wait()) state.SkipWithError("failed");
}
/// No pipeline is kept.
void pipeline_per_use(benchmark::State& state) {
  auto peer = raw(state, 1);
  if (!peer) return;
  for (auto _ : state) {
    const bool made = peer->make_pipeline_again();
    peer->record(1, factor);
    if (!made || !peer->submit_and_wait()) state.SkipWithError("failed");
  }
}
BENCHMARK(second_use_wye)->Name("kernel_second_use/wye")->UseRealTime()->MinTime(0.3);
BENCHMARK(second_use_raw)->Name("kernel_second_use/raw_vulkan")->UseRealTime()->MinTime(0.3);
BENCHMARK(pipeline_per_use)->Name("kernel_second_use/pipeline_per_use")->UseRealTime()->MinTime(0.3);
BENCHMARK(second_use_of_text_wye)->Name("kernel_second_use_of_text/wye")->UseRealTime()->MinTime(0.3);
BENCHMARK(second_use_raw)->Name("kernel_second_use_of_text/raw_vulkan")->UseRealTime()->MinTime(0.3);
BENCHMARK(second_use_wye)->Name("kernel_second_use_2_threads/wye")->Threads(2)->UseRealTime()->MinTime(0.3);
BENCHMARK(second_use_raw)
    ->Name("kernel_second_use_2_threads/raw_vulkan")
    ->Threads(2)
    ->UseRealTime()
    ->MinTime(0.3);

}  // namespace
