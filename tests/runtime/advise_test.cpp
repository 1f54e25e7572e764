// Advice from metrics: one hit and one near miss for each rule.
#include <wye/wye.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

using Sentences = std::vector<std::string>;

/// Jobs of a type on a backend that took these times each.
Metrics jobs_of(std::uint64_t count, Duration build, Duration transfer, Duration run) {
  Metrics metrics;
  metrics.jobs.completed = count;
  TypeMetrics& type = metrics.jobs.by_type["matrix"];
  JobHistograms& times = type.by_backend["cuda"];
  for (std::uint64_t job = 0; job < count; ++job) {
    for (Histogram* histogram : {&type.build, &times.build}) histogram->add(build);
    for (Histogram* histogram : {&type.transfer, &times.transfer}) histogram->add(transfer);
    for (Histogram* histogram : {&type.run, &times.run}) histogram->add(run);
  }
  return metrics;
}

Metrics processor(std::uint32_t slots, std::uint32_t used, std::uint32_t used_elsewhere = 0) {
  Metrics metrics;
  SiliconInfo& one = metrics.silicon.emplace_back();
  one.slots = slots;
  one.used = used;
  one.used_elsewhere = used_elsewhere;
  return metrics;
}

DeviceState device_of(std::string id, bool is_gpu, bool is_emulated) {
  DeviceState state;
  state.id = std::move(id);
  state.is_gpu = is_gpu;
  state.is_emulated = is_emulated;
  return state;
}

}  // namespace

TEST_CASE("metrics without a finding give no advice", "[advise]") {
  CHECK(advise({}).empty());
  Runtime runtime = Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  CHECK(advise(runtime.metrics()).empty());
}

TEST_CASE("advice: transfers are more than half of the time of a type", "[advise]") {
  CHECK(advise(jobs_of(16, 0ms, 6ms, 4ms)) ==
        Sentences{
            "60 % of the time of 16 'matrix' jobs on cuda are transfers (0.096 s of 0.16 s). Keep their data "
            "in an Array, which stays on the device between jobs."});
  CHECK(advise(jobs_of(16, 0ms, 5ms, 5ms)).empty());
  CHECK(advise(jobs_of(15, 0ms, 6ms, 4ms)).empty());
}

TEST_CASE("advice: kernels are evicted and built again", "[advise]") {
  Metrics metrics;
  metrics.cache.misses = 40;
  metrics.cache.misses_evicted = 3;
  metrics.cache.kernels = 9;
  metrics.cache.bytes = Bytes{1 << 20};
  CHECK(advise(metrics) ==
        Sentences{"3 of 40 builds were of kernels that had been evicted. Raise CacheOptions::memory or "
                  "CacheOptions::kernels, which hold 9 kernels in 1.00 MiB now."});
  metrics.cache.misses_evicted = 2;
  CHECK(advise(metrics).empty());
}

TEST_CASE("advice: builds at first use are much of the time of jobs", "[advise]") {
  Metrics metrics = jobs_of(10, 20ms, 0ms, 80ms);
  metrics.cache.misses_first = 5;
  CHECK(
      advise(metrics) ==
      Sentences{
          "20 % of the time of jobs are builds (0.2 s of 1 s), and 5 kernels were built at their first use. "
          "Record a Manifest and prewarm its kernels (ShaderCache::prewarm), or set CacheOptions::directory, "
          "which keeps them for later processes."});
  metrics.cache.misses_first = 0;
  CHECK(advise(metrics).empty());
  for (const auto& [build, run] :
       {std::pair<Duration, Duration>{8ms, 92ms}, {4ms, 6ms}}) {  // a part, and in all
    metrics = jobs_of(10, build, 0ms, run);
    metrics.cache.misses_first = 5;
    CHECK(advise(metrics).empty());
  }
}

TEST_CASE("advice: jobs wait beside idle slots", "[advise]") {
  Metrics metrics = processor(16, 2, 5);
  metrics.jobs.queued = 12;
  CHECK(advise(metrics) ==
        Sentences{
            "12 jobs wait while 7 of 16 slots are in use. Raise PoolOptions::lanes_per_device for jobs on "
            "GPUs, or SchedulerOptions::concurrent_jobs for those on the CPU."});
  metrics.silicon[0].used = 3;
  CHECK(advise(metrics).empty());
  metrics = processor(16, 2);
  CHECK(advise(metrics).empty());
}

TEST_CASE("advice: jobs wait for memory", "[advise]") {
  Metrics metrics;
  metrics.jobs.completed = 1000;
  metrics.jobs.memory_waits = 10;
  CHECK(advise(metrics) ==
        Sentences{
            "Jobs returned to their queues 10 times for want of memory (1000 jobs completed). Raise "
            "PoolOptions::silicon_memory or PoolOptions::pool_memory if they are set, free arrays, or divide "
            "the work."});
  metrics.jobs.memory_waits = 9;
  CHECK(advise(metrics).empty());
}

TEST_CASE("advice: the only GPU is a driver that runs on the CPU", "[advise]") {
  Metrics metrics = processor(4, 0);
  metrics.silicon[0].devices = {device_of("cpu:0", false, false), device_of("vulkan:0", true, true)};
  CHECK(
      advise(metrics) ==
      Sentences{
          "The only GPU is 'vulkan:0', a driver that runs on the CPU. If the machine has a GPU, install its "
          "driver; otherwise leave 'vulkan' out of PoolOptions::backends."});
  metrics.silicon[0].devices.push_back(device_of("vulkan:1", true, false));
  CHECK(advise(metrics).empty());
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"}}}).value();
  const std::vector<Device> devices = runtime.devices();
  const auto is_emulated = [](const Device& device) {
    return device.info().backend == "vulkan" && device.info().type == AdapterType::cpu;
  };
  if (devices.size() != 2 || std::ranges::none_of(devices, is_emulated))
    return test::skip("the only GPU is no driver that runs on the CPU");
  CHECK(advise(runtime.metrics()).size() == 1);
}
