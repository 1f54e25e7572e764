// The events and metrics of builds.
#include <atomic>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cache/cache.hpp"
#include "directory.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Directory;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

/// A copy of an event.
struct Told {
  std::string kernel, device, error;
  CacheTier tier;
  Duration took;
  Bytes bytes;
  double hit_rate;
};

struct Listener {
  std::mutex mutex;
  std::vector<Told> told;
  BuildSink sink() {
    return [this](const BuildEvent& event) {
      const std::lock_guard lock(mutex);
      told.push_back({std::string(event.kernel), std::string(event.device),
                      event.error ? event.error->sentence() : std::string(), event.tier, event.took,
                      event.bytes, event.hit_rate});
    };
  }
};

}  // namespace

TEST_CASE("every build causes one event, with tier, time, bytes and hit rate", "[cache]") {
  const Directory directory;
  Listener listener;
  ManualClock clock;
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale", true), broken = program("broken", true);
  scale->on_build = [&] { return clock.advance(12ms), Result<void>(); };
  broken->on_build = [&]() -> Result<void> {
    clock.advance(5ms);
    return Error(Errc::compile_failed, "No.");
  };
  const auto open = [&] {
    return cache::Cache::open({.directory = directory.cache(), .on_build = listener.sink(), .clock = &clock})
        .value();
  };
  {
    const auto cache = open();
    for (int i = 0; i < 3; ++i) REQUIRE(cache->provide(scale, device, Instant::max()));
    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(cache->provide(broken, device, Instant::max()));
  }
  REQUIRE(open()->provide(scale, device, Instant::max()));

  REQUIRE(listener.told.size() == 3);
  const Told &built = listener.told[0], &failed = listener.told[1], &loaded = listener.told[2];
  CHECK(built.kernel == "scale");
  CHECK(built.device == "double:0");
  CHECK(built.tier == CacheTier::built);
  CHECK(built.took == 12ms);
  CHECK(built.bytes == Bytes{100});
  CHECK(built.error.empty());
  CHECK(built.hit_rate == 0.0);
  CHECK(failed.kernel == "broken");
  CHECK(failed.error == "No.");
  CHECK(failed.tier == CacheTier::none);
  CHECK(failed.took == 5ms);
  CHECK(failed.hit_rate == 0.5);  // two found, one built, one failed
  CHECK(loaded.tier == CacheTier::disk);
  CHECK(loaded.hit_rate == 1.0);
}

TEST_CASE("the sink of events may throw, and may call the cache", "[cache]") {
  std::shared_ptr<cache::Cache> cache;
  const auto device = std::make_shared<DoubleDevice>();
  const auto first = program("first", true), second = program("second", true);
  std::vector<std::string> seen;
  cache = cache::Cache::open({.on_build = [&](const BuildEvent& event) {
            if (event.kernel == "first") {
              (void)cache->provide(second, device, Clock::steady().now() + 1min).has_value();
              seen = cache->contents();
            }
            throw std::runtime_error("the host's");
          }}).value();
  CHECK(cache->provide(first, device, Instant::max()));
  CHECK(cache->journal()->flush());
  CHECK(seen == std::vector<std::string>{"second@double:0", "first@double:0"});
  CHECK(cache->provide(first, device, Clock::steady().now() + 1min)->tier == CacheTier::memory);
}

TEST_CASE("host functions cause no event", "[cache]") {
  Listener listener;
  auto opened = ShaderCache::open({.on_build = listener.sink()}).value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  CHECK(opened.find_or_build(*kernel, Device(std::make_shared<DoubleDevice>("cpu:0"))));
  CHECK(cache::of(opened).journal()->flush());
  CHECK(listener.told.empty());
}

TEST_CASE("spent and saved time are counted per kernel", "[cache]") {
  ManualClock clock;
  const auto cache = cache::Cache::open({.kernels = 1, .clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto slow = program("slow", true), quick = program("quick", true);
  slow->on_build = [&] { return clock.advance(300ms), Result<void>(); };
  quick->on_build = [&] { return clock.advance(20ms), Result<void>(); };
  for (int i = 0; i < 4; ++i) REQUIRE(cache->provide(slow, device, Instant::max()));
  for (int i = 0; i < 2; ++i) REQUIRE(cache->provide(quick, device, Instant::max()));  // evicts the other
  REQUIRE(cache->provide(slow, device, Instant::max()));
  const std::vector<KernelMetrics> kernels = cache->kernel_metrics();
  REQUIRE(kernels.size() == 2);
  CHECK(kernels[0] == KernelMetrics{"slow", "double:0", 5, 2, 0, 600ms, 900ms});
  CHECK(kernels[1] == KernelMetrics{"quick", "double:0", 2, 1, 0, 20ms, 20ms});
  CHECK(metrics(*cache).build_time == 620ms);
  CHECK(metrics(*cache).saved == 920ms);
}

TEST_CASE("the metrics of kernels are consistent while threads use the cache", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 6}).value();
  const auto device = std::make_shared<DoubleDevice>();
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  for (int i = 0; i < 10; ++i) programs.push_back(program("k" + std::to_string(i), true));
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 3; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = t; !over; i += 1 + i % 3)
        (void)cache->provide(programs[i % programs.size()], device, Instant::max()).has_value();
    });
  for (int i = 0; i < 200; ++i) {
    const CacheMetrics now = metrics(*cache);
    CHECK(now.misses == now.misses_first + now.misses_evicted);
    CHECK(now.evictions <= now.misses);
    CHECK(now.kernels + now.evictions == now.misses);
    const std::vector<KernelMetrics> kernels = cache->kernel_metrics();
    const auto sum = [&](auto member) {
      return std::accumulate(kernels.begin(), kernels.end(), std::uint64_t{0},
                             [&](std::uint64_t n, const KernelMetrics& k) { return n + k.*member; });
    };
    CHECK(sum(&KernelMetrics::builds) >= now.misses);
    CHECK(sum(&KernelMetrics::uses) >= sum(&KernelMetrics::builds));
  }
  over = true;
  for (auto& thread : threads) thread.join();
}
