// The cost of an empty job.
#include <benchmark/benchmark.h>
#include <wye/wye.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace {

std::vector<float> values(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = 0.5f + static_cast<float>(i % 977) * 0.001f;
  return v;
}

void work(wye::Range range, std::span<float> x, float s) {
  for (std::uint64_t i : range) x[i] *= s;
}

using Scale = wye::Kernel<wye::ReadWrite<float>, float>;
const Scale& kernel() {
  static const auto scale = Scale::make({.name = "scale", .sources = {wye::host(work)}});
  return *scale;
}
const Scale& one_of_two() {
  static const auto other = Scale::make({.name = "other", .sources = {wye::host(work)}});
  static const Scale both = wye::fastest_of(kernel(), {*other});
  return both;
}

const std::uint32_t kept = wye::SchedulerOptions{}.recent;  // decisions
wye::Runtime open(const char* backend, std::uint32_t recent = kept) {
  return wye::Runtime::open({.pool = {.backends = {backend}}, .scheduler = {.recent = recent}}).value();
}

void job_independent_null(benchmark::State& state) {
  wye::Runtime runtime = open("null");
  constexpr std::size_t jobs = 1000;
  auto x = values(64);
  std::vector<wye::Ticket> tickets;
  tickets.reserve(jobs);
  for (auto _ : state) {
    for (std::size_t i = 0; i < jobs; ++i) tickets.push_back(runtime.submit(kernel()(x, 1.5f)));
    for (wye::Ticket& ticket : tickets)
      if (!ticket.wait()) state.SkipWithError("failed");
    tickets.clear();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(jobs));
}
BENCHMARK(job_independent_null)->Name("job_independent_null_x1000/wye")->MeasureProcessCPUTime();

void run_null(benchmark::State& state, const Scale& (*scale)(), std::uint32_t recent) {
  wye::Runtime runtime = open("null", recent);
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.run(scale()(x, 1.5f))) state.SkipWithError("failed");
}
BENCHMARK_CAPTURE(run_null, kernel, kernel, kept)->Name("job_run_null/wye")->MeasureProcessCPUTime();

// The cost of choosing the quicker of two kernels after autotuning.
BENCHMARK_CAPTURE(run_null, one_of_two, one_of_two, kept)
    ->Name("job_run_null_of_2_variants/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(run_null, one, kernel, kept)
    ->Name("job_run_null_of_2_variants/one_kernel")
    ->MeasureProcessCPUTime();

// The cost of keeping the last 1,024 decisions.
BENCHMARK_CAPTURE(run_null, recent, kernel, kept)
    ->Name("job_run_null_keeping_decisions/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(run_null, none, kernel, 0)
    ->Name("job_run_null_keeping_decisions/none_kept")
    ->MeasureProcessCPUTime();

void submit_and_wait_cpu(benchmark::State& state) {
  wye::Runtime runtime = open("cpu");
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.submit(kernel()(x, 1.000001f)).wait()) state.SkipWithError("failed");
}
BENCHMARK(submit_and_wait_cpu)->Name("submit_and_wait_cpu/wye")->MeasureProcessCPUTime();

void run_inline_cpu(benchmark::State& state) {
  wye::Runtime runtime = open("cpu");
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.run(kernel()(x, 1.000001f))) state.SkipWithError("failed");
}
BENCHMARK(run_inline_cpu)->Name("run_inline_cpu/wye");

void run_inline_direct(benchmark::State& state) {
  auto x = values(64);
  for (auto _ : state) {
    work({0, x.size(), x.size()}, x, 1.000001f);
    benchmark::ClobberMemory();
  }
}
BENCHMARK(run_inline_direct)->Name("run_inline_cpu/direct_call");

void runtime_open(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(open("cpu"));
}
BENCHMARK(runtime_open)->Name("runtime_open_cpu/wye")->UseRealTime();

}  // namespace
