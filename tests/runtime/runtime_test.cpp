#include <wye/wye.hpp>

#include <algorithm>

#include "support/catch.hpp"
#include "support/kernels.hpp"

using namespace wye;
using namespace wye::literals;

TEST_CASE("the CPU is always there, and what is missing has a reason", "[runtime]") {
  const Runtime runtime = Runtime::open().value();
  bool cpu = false;
  for (const AdapterInfo& info : runtime.adapters()) {
    INFO(info.id);
    CHECK(info.usable == info.reason.empty());
    cpu |= info.id == "cpu:0" && info.usable;
  }
  CHECK(cpu);
  CHECK(runtime.devices().size() ==
        static_cast<std::size_t>(std::count_if(runtime.adapters().begin(), runtime.adapters().end(),
                                               [](const AdapterInfo& info) { return info.usable; })));
}

TEST_CASE("a runtime without any device says why for each", "[runtime]") {
  auto none = Runtime::open({.backends = {{"cuda"}}});
  if (none) return;  // this build and machine have it
  CHECK(none.error() == Errc::unavailable);
  CHECK(none.error().sentence().find("No device can be used. cuda") == 0);
}

TEST_CASE("headers of another version are refused with both versions", "[runtime]") {
  auto refused = Runtime::open({}, Version{0, 99, 0});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  CHECK(refused.error().sentence().find("wye 0.99.0") != std::string::npos);
  CHECK(refused.error().sentence().find(to_string(library_version())) != std::string::npos);
  CHECK(library_version() == header_version);
}

TEST_CASE("metrics add up", "[runtime]") {
  Runtime runtime = Runtime::open({.backends = {{"cpu"}}}).value();
  std::vector<float> x(64, 1.0f);
  const auto scale = test::host_scale();
  for (int i = 0; i < 5; ++i) CHECK(runtime.run(scale(x, 1.5f)));
  const Metrics metrics = runtime.metrics();
  CHECK(metrics.jobs.submitted == 5);
  CHECK(metrics.jobs.done == 5);
  CHECK(metrics.jobs.done_by_backend.at("cpu") == 5);
  CHECK(metrics.cache.kernels == 1);
  CHECK(metrics.cache.hits == 4);
  CHECK(metrics.cache.misses == 1);
  CHECK(metrics.pool.active == 0);
  CHECK(metrics.pool.leases == 5);
  CHECK(metrics.contexts.size() == metrics.pool.contexts);
  std::uint64_t kernels = 0;
  for (const ContextInfo& context : metrics.contexts) kernels += context.kernels;
  CHECK(kernels == 5);
}

TEST_CASE("an outcome tells where the kernel was found", "[runtime]") {
  Runtime runtime = Runtime::open().value();
  std::vector<float> x(64, 1.0f);
  const auto scale = test::scale();
  for (const Device& device : runtime.devices()) {
    const bool compiles = device.info().backend != "cpu";
    CHECK(runtime.run(scale(x, 2.0f), {.on = device.id()})->cache() ==
          (compiles ? CacheTier::built : CacheTier::none));
    CHECK(runtime.run(scale(x, 2.0f), {.on = device.id()})->cache() == CacheTier::memory);
  }
}

TEST_CASE("the three nouns work alone and together", "[runtime]") {
  auto pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 4}).value();
  auto cache = ShaderCache::open({.memory = 64_MiB, .eviction = Eviction::lru}).value();
  const auto scale = test::scale();
  auto lease = pool.lease().value();
  const auto program = cache.find_or_build(scale, lease.device());
  REQUIRE(program);
  std::vector<float> values(1000), out(1000, -1.0f);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.25f - 3;
  const auto buffer = lease.device().buffer<float>(values.size());
  REQUIRE(buffer);
  lease.upload(values, *buffer);
  lease.dispatch(*program, arguments(*buffer, 2.0f));
  lease.download(*buffer, out);
  REQUIRE(lease.wait(std::chrono::seconds(5)));
  for (std::size_t i = 0; i < values.size(); ++i) CHECK(out[i] == values[i] * 2);

  CHECK(Scheduler::open(pool, nullptr).error() == Errc::invalid_argument);
  Scheduler scheduler = Scheduler::open(pool, cache).value();
  CHECK(scheduler.run(scale(values, 2.0f)));
  CHECK(values == out);
  CHECK(cache.metrics().hits == 1);
}
