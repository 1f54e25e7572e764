// How much a cache that is full still finds, and what another choice of victims would. No time is
// taken: what is compared are requests that were not found after the start, which is the second
// half of each trace.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>

#include "traces/policy.hpp"

namespace {

using wye_bench::Outcome;
using wye_bench::Scene;
using wye_bench::Trace;

struct Policy {
  const char* who;
  Outcome (*run)(const Trace& trace, std::uint32_t room);
};
constexpr Policy policies[] = {
    {"wye",
     [](const Trace& t, std::uint32_t room) { return wye_bench::in_cache(t, room, wye::Eviction::lru); }},
    {"wye_slru",
     [](const Trace& t, std::uint32_t room) { return wye_bench::in_cache(t, room, wye::Eviction::slru); }},
    {"fifo", wye_bench::in_fifo},
    {"belady", wye_bench::in_belady},
};

void evict(benchmark::State& state, const Scene& scene, const Policy& policy) {
  const Trace trace = scene.make();
  Outcome outcome;
  for (auto _ : state) {
    outcome = policy.run(trace, scene.room);
    state.SetIterationTime(0);
  }
  const double after_start = hit_rate_after_start(outcome, trace);
  char label[64];
  std::snprintf(label, sizeof label, "finds %.1f %%, after the start %.1f %%", hit_rate(outcome, trace),
                after_start);
  state.SetLabel(label);
  state.counters["misses"] = 1 - after_start / 100;
}

const bool registered = [] {
  for (const Scene& scene : wye_bench::scenes())
    for (const Policy& policy : policies)
      benchmark::RegisterBenchmark(("evict_" + std::string(scene.name) + "/" + policy.who).c_str(), evict,
                                   scene, policy)
          ->UseManualTime()
          ->Iterations(1)
          ->Repetitions(1);
  return true;
}();

}  // namespace
