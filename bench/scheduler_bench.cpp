// The cost of an empty job, of a waiting job, and of the hand-over between threads.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <wye/wye.hpp>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "lane.hpp"
#include "peers/onetbb.hpp"
#include "peers/ping_pong.hpp"

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

/// The options of job `i`: each priority in turn.
wye::JobOptions options(std::size_t i) { return {.priority = static_cast<wye::Priority>(i % 3)}; }

constexpr std::size_t at_once = 1000;  // jobs in flight of each thread

/// Threads that begin each round together, and end it together.
class Threads {
 public:
  Threads(int count, std::function<void()> round)
      : begins_(count + 1), ends_(count + 1), round_(std::move(round)) {
    for (int t = 0; t < count; ++t)
      threads_.emplace_back([this] {
        for (;;) {
          begins_.arrive_and_wait();
          if (ended_) return;
          round_();
          ends_.arrive_and_wait();
        }
      });
  }
  ~Threads() {
    ended_ = true;
    begins_.arrive_and_wait();
    for (std::thread& thread : threads_) thread.join();
  }
  void run() {
    begins_.arrive_and_wait();
    ends_.arrive_and_wait();
  }

 private:
  std::barrier<> begins_, ends_;
  std::function<void()> round_;
  std::atomic<bool> ended_{false};
  std::vector<std::thread> threads_;
};

/// Submits jobs from `threads` threads, each of which then waits for its own.
void independent_null(benchmark::State& state, int threads) {
  wye::Runtime runtime = open("null");
  std::atomic<bool> failed{false};
  const auto round = [&] {
    thread_local std::vector<wye::Ticket> tickets;
    thread_local auto x = values(64);
    tickets.reserve(at_once);
    for (std::size_t i = 0; i < at_once; ++i)
      tickets.push_back(runtime.submit(kernel()(x, 1.5f), options(i)));
    for (wye::Ticket& ticket : tickets)
      if (!ticket.wait()) failed = true;
    tickets.clear();
  };
  if (threads == 1) {
    for (auto _ : state) round();
  } else {
    Threads all(threads, round);
    for (auto _ : state) all.run();
  }
  if (failed) state.SkipWithError("failed");
  state.SetItemsProcessed(state.iterations() * threads * static_cast<std::int64_t>(at_once));
}
/// Submits the same jobs together.
void independent_null_together(benchmark::State& state) {
  wye::Runtime runtime = open("null");
  auto x = values(64);
  std::vector<wye::Job> jobs;
  jobs.reserve(at_once);
  bool failed = false;
  for (auto _ : state) {
    for (std::size_t i = 0; i < at_once; ++i) jobs.push_back(kernel()(x, 1.5f));
    auto tickets = runtime.submit(jobs, options(0));
    for (wye::Ticket& ticket : tickets)
      if (!ticket.wait()) failed = true;
    jobs.clear();
  }
  if (failed) state.SkipWithError("failed");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(at_once));
}
void independent_onetbb(benchmark::State& state, int threads) {
  wye_bench::OneTbb tbb;
  const auto round = [&] {
    thread_local std::vector<std::future<void>> futures;
    futures.reserve(at_once);
    tbb.enqueue(at_once, futures);
    for (std::future<void>& future : futures) future.get();
    futures.clear();
  };
  if (threads == 1) {
    for (auto _ : state) round();
  } else {
    Threads all(threads, round);
    for (auto _ : state) all.run();
  }
}
void independent_onetbb_group(benchmark::State& state) {
  wye_bench::OneTbb tbb;
  for (auto _ : state) tbb.run_group(at_once);
}
BENCHMARK_CAPTURE(independent_null, one, 1)->Name("job_independent_null_x1000/wye")->MeasureProcessCPUTime();
BENCHMARK(independent_null_together)
    ->Name("job_independent_null_x1000/wye_together")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(independent_onetbb, one, 1)
    ->Name("job_independent_null_x1000/onetbb_future")
    ->MeasureProcessCPUTime();
BENCHMARK(independent_onetbb_group)->Name("job_independent_null_x1000/onetbb_group")->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(independent_null, eight, 8)
    ->Name("job_independent_null_8_threads_x8000/wye")
    ->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(independent_onetbb, eight, 8)
    ->Name("job_independent_null_8_threads_x8000/onetbb_future")
    ->MeasureProcessCPUTime();

/// Each job follows the one before.
void chained_null(benchmark::State& state) {
  wye::Runtime runtime = open("null");
  auto x = values(64);
  std::vector<wye::Ticket> tickets;
  tickets.reserve(at_once);
  for (auto _ : state) {
    for (std::size_t i = 0; i < at_once; ++i) {
      wye::JobOptions after = options(i);
      if (i != 0) after.after = {tickets.back()};
      tickets.push_back(runtime.submit(kernel()(x, 1.5f), after));
    }
    if (!tickets.back().wait()) state.SkipWithError("failed");
    tickets.clear();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(at_once));
}
/// The graph is made each time, as the jobs are.
void chained_onetbb(benchmark::State& state) {
  wye_bench::OneTbb tbb;
  for (auto _ : state) tbb.run_chain(at_once);
}
BENCHMARK(chained_null)->Name("job_chained_null_x1000/wye")->MeasureProcessCPUTime();
BENCHMARK(chained_onetbb)->Name("job_chained_null_x1000/onetbb_flow_graph")->MeasureProcessCPUTime();

/// The memory of waiting jobs: `bytes` of all allocations for each job.
void waiting(benchmark::State& state, bool in_chain) {
  const std::size_t jobs = wye_bench::sized(10'000, 100);
  for (auto _ : state) {
    wye::Runtime runtime =
        wye::Runtime::open({.pool = {.backends = {"cpu"}}, .scheduler = {.concurrent_jobs = 1}}).value();
    std::promise<void> entered, may_end;
    const auto held = wye::Kernel<wye::ReadWrite<float>>::make(
        {.name = "held", .sources = {wye::host([&](wye::Range, std::span<float>) {
                           entered.set_value();
                           may_end.get_future().wait();
                         })}});
    std::vector<float> one(1), x = values(64);
    std::vector<wye::Ticket> tickets;
    tickets.reserve(jobs + 1);
    tickets.push_back(runtime.submit((*held)(one)));
    entered.get_future().wait();
    const auto used = [] {
      const struct mallinfo2 info = mallinfo2();
      return static_cast<double>(info.uordblks + info.hblkhd);
    };
    const double before = used();
    for (std::size_t i = 0; i < jobs; ++i) {
      wye::JobOptions after = options(i);
      if (in_chain) after.after = {tickets.back()};
      tickets.push_back(runtime.submit(kernel()(x, 1.5f), after));
    }
    state.counters["bytes"] = (used() - before) / static_cast<double>(jobs);
    may_end.set_value();
    for (wye::Ticket& ticket : tickets)
      if (!ticket.wait()) state.SkipWithError("failed");
    state.SetIterationTime(0);
  }
}
BENCHMARK_CAPTURE(waiting, in_the_queue, false)->Name("job_waiting/wye")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(waiting, in_chain, true)->Name("job_waiting_in_chain/wye")->UseManualTime()->Iterations(1);

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

/// The same with a listener that does nothing.
void run_null_listened(benchmark::State& state) {
  wye::Runtime runtime = open("null");
  const auto heard = runtime.listen([](const wye::Event& event) { benchmark::DoNotOptimize(event.number); });
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.run(kernel()(x, 1.5f))) state.SkipWithError("failed");
}
BENCHMARK(run_null_listened)->Name("job_run_null_listened/wye")->MeasureProcessCPUTime();
BENCHMARK_CAPTURE(run_null, heard, kernel, kept)
    ->Name("job_run_null_listened/without_a_listener")
    ->MeasureProcessCPUTime();

void submit_and_wait_cpu(benchmark::State& state) {
  wye::Runtime runtime = open("cpu");
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.submit(kernel()(x, 1.000001f)).wait()) state.SkipWithError("failed");
}
void futex_ping_pong(benchmark::State& state) {
  wye_bench::PingPong pair;
  for (auto _ : state) pair.round_trip();
}
BENCHMARK(submit_and_wait_cpu)->Name("submit_and_wait_cpu/wye")->MeasureProcessCPUTime();
BENCHMARK(futex_ping_pong)->Name("submit_and_wait_cpu/futex_ping_pong")->MeasureProcessCPUTime();

void run_inline_cpu(benchmark::State& state) {
  wye::Runtime runtime = open("cpu");
  auto x = values(64);
  for (auto _ : state)
    if (!runtime.run(kernel()(x, 1.000001f))) state.SkipWithError("failed");
}
BENCHMARK(run_inline_cpu)->Name("run_inline_cpu/wye")->MeasureProcessCPUTime();

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
