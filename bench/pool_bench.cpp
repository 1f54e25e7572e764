// The cost of a lease, of a switch between contexts, and of a lane of the CPU below jobs and
// tickets.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lane.hpp"

namespace {

using SteadyClock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

void lease_return(benchmark::State& state) {
  auto pool = wye::ContextPool::open({.backends = {"cpu"}}).value();
  for (auto _ : state)
    if (!pool.lease()) state.SkipWithError("failed");
}
BENCHMARK(lease_return)->Name("lease_return/wye")->UseRealTime();

/// Several threads lease from one pool, which has a context and a slot for each of them.
void lease_return_together(benchmark::State& state) {
  static wye::ContextPool pool =
      wye::ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 8, .contexts_ahead = 8}).value();
  for (auto _ : state)
    if (!pool.lease()) state.SkipWithError("failed");
}
BENCHMARK(lease_return_together)->Name("lease_return_2_threads/wye")->Threads(2)->UseRealTime();
BENCHMARK(lease_return_together)->Name("lease_return_8_threads/wye")->Threads(8)->UseRealTime();

/// Leases each context of a pool for the first time, and submits to it. Each iteration opens its
/// own pool. The counters are the mean bytes of a context over the first 1, 16 and 64 contexts.
void context_cold(benchmark::State& state, const char* backend) {
  constexpr int contexts = 64;
  double bytes[3] = {};
  for (auto _ : state) {
    auto pool = wye::ContextPool::open({.backends = {backend}, .lanes_per_device = contexts});
    if (!pool || pool->devices().empty()) return state.SkipWithError("no such device");
    const auto buffer = pool->devices()[0].buffer<std::uint32_t>(1).value();
    std::vector<wye::Lease> leases;
    leases.reserve(contexts);
    malloc_trim(0);  // otherwise memory of an earlier iteration is used again
    const double before = wye_bench::resident_bytes();
    Seconds seconds{};
    for (int i = 0; i < contexts; ++i) {
      const auto start = SteadyClock::now();
      auto lease = pool->lease();
      if (!lease) return state.SkipWithError(lease.error().sentence().c_str());
      lease->fill(buffer, 1);
      lease->submit();
      seconds += SteadyClock::now() - start;
      if (!lease->wait()) return state.SkipWithError("failed");
      leases.push_back(*std::move(lease));
      for (const auto& [slot, count] : {std::pair(0, 1), std::pair(1, 16), std::pair(2, 64)})
        if (i + 1 == count)
          bytes[slot] = std::max(bytes[slot], (wye_bench::resident_bytes() - before) / count);
    }
    state.SetIterationTime(seconds.count() / contexts);
  }
  state.counters["bytes_1"] = bytes[0];
  state.counters["bytes_16"] = bytes[1];
  state.counters["bytes"] = bytes[2];
}
BENCHMARK_CAPTURE(context_cold, cpu, "cpu")->Name("context_cold_cpu/wye")->UseManualTime()->Iterations(4);
BENCHMARK_CAPTURE(context_cold, vulkan, "vulkan")
    ->Name("context_cold_vulkan/wye")
    ->UseManualTime()
    ->Iterations(4);

/// Submits to one context, then twice to another one. The first submission to the other context is
/// a switch, the second is not. The counters are percentiles of the difference of their times, in
/// seconds.
void context_switch(benchmark::State& state, const char* from, const char* to) {
  auto pool = wye::ContextPool::open({.backends = {from, to}});
  if (!pool) return state.SkipWithError(pool.error().sentence().c_str());
  auto first = pool->lease({.on = from}), second = pool->lease({.on = to});
  if (!first || !second) return state.SkipWithError("no such device");
  const auto a = first->buffer<std::uint32_t>(1).value(), b = second->buffer<std::uint32_t>(1).value();
  const auto submit = [](wye::Lease& lease, const wye::Buffer& buffer) {
    lease.fill(buffer, 1);
    lease.submit();
  };
  std::vector<double> switches;
  int submissions = 0;
  for (auto _ : state) {
    submit(*first, a);
    const auto start = SteadyClock::now();
    submit(*second, b);
    const auto middle = SteadyClock::now();
    submit(*second, b);
    const auto end = SteadyClock::now();
    switches.push_back(Seconds((middle - start) - (end - middle)).count());
    state.SetIterationTime(Seconds(middle - start).count());
    if (++submissions % 32 == 0 && (!first->wait() || !second->wait())) state.SkipWithError("failed");
  }
  std::sort(switches.begin(), switches.end());
  for (const auto& [name, share] : {std::pair("p50", 0.5), std::pair("p99", 0.99)})
    state.counters[name] =
        std::max(0.0, switches[static_cast<std::size_t>(share * static_cast<double>(switches.size() - 1))]);
}
BENCHMARK_CAPTURE(context_switch, null, "null", "null")->Name("context_switch_null/wye")->UseManualTime();
BENCHMARK_CAPTURE(context_switch, cpu, "cpu", "cpu")->Name("context_switch_cpu/wye")->UseManualTime();
BENCHMARK_CAPTURE(context_switch, vulkan, "vulkan", "vulkan")
    ->Name("context_switch_vulkan/wye")
    ->UseManualTime();
BENCHMARK_CAPTURE(context_switch, cuda, "cuda", "cuda")->Name("context_switch_cuda/wye")->UseManualTime();
BENCHMARK_CAPTURE(context_switch, across, "vulkan", "null")
    ->Name("context_switch_across/wye")
    ->UseManualTime();

// A host function on a lane of the CPU, with memory that is the lane's.

void work(wye::Range range, std::span<float> x, float s) {
  for (std::uint64_t i : range) x[i] *= s;
}

struct Lane {
  wye::ContextPool pool = wye::ContextPool::open({.backends = {"cpu"}}).value();
  wye::ShaderCache cache = wye::ShaderCache::open().value();
  wye::Kernel<wye::ReadWrite<float>, float> kernel =
      wye::Kernel<wye::ReadWrite<float>, float>::make({.name = "scale", .sources = {wye::host(work)}})
          .value();
  wye::Lease lease = pool.lease().value();
  wye::Executable executable = cache.find_or_build(kernel, lease.device()).value();
  wye::Buffer buffer = lease.buffer<float>(64).value();

  Lane() {
    lease.upload(std::vector<float>(64, 1.5f), buffer);
    lease.wait().value();
  }
};

/// A waiter without a deadline runs the work itself; a waiter with one leaves it to the team.
void lane_wait(benchmark::State& state, wye::Deadline deadline) {
  Lane lane;
  const auto arguments = wye::arguments(lane.buffer, 1.000001f);
  for (auto _ : state) {
    lane.lease.dispatch(lane.executable, arguments);
    if (!lane.lease.wait(deadline)) state.SkipWithError("failed");
  }
}

void lane_inline(benchmark::State& state) { lane_wait(state, {}); }
BENCHMARK(lane_inline)->Name("lane_inline_cpu/wye");

void lane_submit_and_wait(benchmark::State& state) { lane_wait(state, std::chrono::seconds(60)); }
BENCHMARK(lane_submit_and_wait)->Name("lane_submit_and_wait_cpu/wye")->MeasureProcessCPUTime()->UseRealTime();

void direct_call(benchmark::State& state) {
  std::vector<float> x(64, 1.5f);
  for (auto _ : state) {
    work({0, x.size(), x.size()}, x, 1.000001f);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(direct_call)->Name("lane_inline_cpu/direct_call");

}  // namespace
