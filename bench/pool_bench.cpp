// The cost of a lease, and of a lane of the CPU below jobs and tickets.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <chrono>
#include <span>
#include <vector>

namespace {

void lease_return(benchmark::State& state) {
  auto pool = wye::ContextPool::open({.backends = {"cpu"}}).value();
  for (auto _ : state)
    if (!pool.lease()) state.SkipWithError("failed");
}
BENCHMARK(lease_return)->Name("lease_return/wye")->UseRealTime();

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
