#include "cache/cache.hpp"
#include "base/internals.hpp"

#include <wye/kernel/kernel.hpp>

#include <stdexcept>

#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/kernels.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::DoubleDevice;
using test::metrics;
using test::program;

namespace {

std::shared_ptr<cache::Cache> open(CacheOptions options = {}) { return cache::Cache::open(options).value(); }

device::Provided get(cache::Cache& cache, const std::shared_ptr<const device::Program>& what,
                     const std::shared_ptr<DoubleDevice>& device) {
  auto provided = cache.provide(what, device, Instant::max());
  if (!provided) FAIL(provided.error().describe());
  return *provided;
}

}  // namespace

TEST_CASE("a kernel is built at its first use and found at every later one", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale");
  const auto first = get(*cache, scale, device);
  CHECK(first.tier == CacheTier::built);
  CHECK(base::state_of(first.executable)->artefact().kernel == "scale");
  for (int i = 0; i < 10; ++i) {
    const auto again = get(*cache, scale, device);
    CHECK(again.tier == CacheTier::memory);
    CHECK(base::state_of(again.executable) == base::state_of(first.executable));
    CHECK(again.build_time == Duration{});
  }
  CHECK(scale->builds == 1);
  CHECK(device->created == 1);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.misses == 1);
  CHECK(counted.hits == 10);
  CHECK(counted.kernels == 1);
  CHECK(counted.bytes == 100_B);
  CHECK(counted.failures == 0);
  CHECK(counted.evictions == 0);
  CHECK(counted.disk_hits == 0);
}

TEST_CASE("the source of a kernel is chosen once per device, in a cold job and after it", "[cache]") {
  const auto cache = open();
  const AnyKernel kernel = test::scale();
  const auto job = [&](const std::shared_ptr<DoubleDevice>& device) {  // as the scheduler does it
    CHECK_FALSE(base::program_of(kernel)->refusal(*device));
    CHECK(cache->build_cost(*base::program_of(kernel), *device).has_value() == (device->created == 0));
    REQUIRE(cache->provide(base::program_of(kernel), device, Clock::steady().now() + 1h));
    CHECK_FALSE(base::program_of(kernel)->passed_over(*device));
  };
  for (const char* id : {"double:0", "double:1"}) {
    const auto device = std::make_shared<DoubleDevice>(id);
    job(device);
    CHECK(device->created == 1);
    CHECK(device->routed == 1);
    job(device);
    CHECK(device->created == 1);
    CHECK(device->routed == 1);
  }
}

TEST_CASE("the time of a build comes from the application's clock", "[cache]") {
  ManualClock clock;
  const auto cache = open({.clock = &clock});
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale");
  scale->on_build = [&] { return clock.advance(7ms), Result<void>(); };
  CHECK(get(*cache, scale, device).build_time == 7ms);
  CHECK(metrics(*cache).build_time == 7ms);
}

TEST_CASE("each device has its own executable", "[cache]") {
  const auto cache = open();
  const auto one = std::make_shared<DoubleDevice>("double:0"),
             two = std::make_shared<DoubleDevice>("double:1");
  const auto scale = program("scale");
  const auto on_one = get(*cache, scale, one), on_two = get(*cache, scale, two);
  CHECK(base::state_of(on_one.executable) != base::state_of(on_two.executable));
  CHECK(base::state_of(on_one.executable)->device() == one);
  CHECK(base::state_of(on_two.executable)->device() == two);
  CHECK(cache->contents() == std::vector<std::string>{"scale@double:1", "scale@double:0"});
}

TEST_CASE("programs with one key share one executable", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  const auto one = program("same"), two = program("same");
  const auto first = get(*cache, one, device).executable;
  CHECK(base::state_of(get(*cache, two, device).executable) == base::state_of(first));
  CHECK(one->builds == 1);
  CHECK(two->builds == 0);
}

TEST_CASE("a compile error is returned again for ten minutes without compiling", "[cache]") {
  for (const Errc code : {Errc::compile_failed, Errc::unsupported, Errc::invalid_argument}) {
    ManualClock clock;
    const auto cache = open({.clock = &clock});
    const auto device = std::make_shared<DoubleDevice>();
    const auto broken = program("broken");
    broken->on_build = [&] { return Result<void>(Error(code, "broken.comp:3: no.")); };
    for (int i = 1; i <= 3; ++i) {
      const auto provided = cache->provide(broken, device, Instant::max());
      REQUIRE_FALSE(provided);
      CHECK(provided.error().code() == code);
      CHECK(provided.error().sentence() == "broken.comp:3: no.");
      CHECK(broken->builds == 1);
    }
    CHECK(metrics(*cache).failures == 1);
    CHECK(metrics(*cache).failure_hits == 2);
    CHECK(metrics(*cache).misses == 0);
    CHECK(metrics(*cache).kernels == 0);
    broken->on_build = nullptr;
    clock.advance(10min - 1ns);
    CHECK_FALSE(cache->provide(broken, device, Instant::max()));
    clock.advance(1ns);
    CHECK(get(*cache, broken, device).tier == CacheTier::built);
    CHECK(metrics(*cache).misses_first == 1);
  }
}

TEST_CASE("a temporary failure is not kept", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  const auto broken = program("broken");
  int builds = 0;
  for (const Errc code : {Errc::out_of_memory, Errc::timed_out, Errc::device_lost, Errc::io, Errc::cancelled,
                          Errc::over_budget, Errc::unavailable, Errc::internal, Errc::closed}) {
    broken->on_build = [&] { return Result<void>(Error(code, "No.")); };
    for (int i = 0; i < 2; ++i) {
      CHECK(cache->provide(broken, device, Instant::max()).error() == code);
      CHECK(broken->builds == ++builds);
    }
  }
  CHECK(metrics(*cache).failure_hits == 0);
}

TEST_CASE("a failure concerns one device, and clear removes it", "[cache]") {
  const auto cache = open();
  auto device = std::make_shared<DoubleDevice>("double:0");
  const auto other = std::make_shared<DoubleDevice>("double:1");
  const auto broken = program("broken");
  device->refuse = Error(Errc::unsupported, "No.");
  CHECK_FALSE(cache->provide(broken, device, Instant::max()));
  CHECK(cache->provide(broken, other, Instant::max()));
  device->refuse.reset();
  CHECK_FALSE(cache->provide(broken, device, Instant::max()));
  cache->clear();
  CHECK(cache->provide(broken, device, Instant::max()));
}

TEST_CASE("the number of kept failures is bounded", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  std::vector<std::shared_ptr<test::CountingProgram>> broken;
  for (int i = 0; i < 2000; ++i) {
    broken.push_back(program("broken " + std::to_string(i)));
    broken.back()->on_build = [] { return Result<void>(Error(Errc::compile_failed, "No.")); };
    CHECK_FALSE(cache->provide(broken.back(), device, Instant::max()));
  }
  int kept = 0;
  for (std::size_t i = broken.size(); i-- > 0;) {  // the newest first
    const int before = broken[i]->builds;
    CHECK_FALSE(cache->provide(broken[i], device, Instant::max()));
    if (broken[i]->builds != before) break;
    ++kept;
  }
  CHECK(kept == 512);
}

TEST_CASE("evictions, however many, do not make the cache forget a failure", "[cache]") {
  const auto cache = open({.kernels = 1});
  const auto device = std::make_shared<DoubleDevice>();
  const auto broken = program("broken");
  broken->on_build = [] { return Result<void>(Error(Errc::compile_failed, "No.")); };
  CHECK_FALSE(cache->provide(broken, device, Instant::max()));
  for (int i = 0; i < 1000; ++i) get(*cache, program("kernel " + std::to_string(i)), device);
  CHECK_FALSE(cache->provide(broken, device, Instant::max()));
  CHECK(broken->builds == 1);
}

TEST_CASE("misses are counted by cause", "[cache]") {
  const auto store = std::make_shared<test::MemoryStore>();
  const auto cache = cache::Cache::open({.kernels = 1, .store = store}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto a = program("a"), b = program("b"), stored = program("stored", true);
  get(*cache, a, device);
  get(*cache, b, device);
  CHECK(metrics(*cache).misses_first == 2);
  store->blobs.clear();
  get(*cache, a, device);
  CHECK(metrics(*cache).misses_evicted == 1);
  store->blobs[stored->artefact().key] = {std::byte{1}};
  get(*cache, stored, device);
  CHECK(metrics(*cache).misses_corrupt == 1);
  cache->clear();
  store->blobs.clear();
  get(*cache, b, device);
  CHECK(metrics(*cache).misses_evicted == 2);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.misses == counted.misses_first + counted.misses_evicted + counted.misses_corrupt);
  CHECK(counted.evictions == 3);
  CHECK(counted.evictions_reclaimed == 0);
  CHECK(counted.cleared == 1);
  CHECK(cache->reclaim(*device, 1_GiB) == 100_B);
  CHECK(metrics(*cache).evictions == 4);
  CHECK(metrics(*cache).evictions_reclaimed == 1);
  get(*cache, b, device);
  device->lose();
  CHECK_FALSE(cache->provide(b, device, Instant::max()));
  CHECK(metrics(*cache).lost == 1);
  CHECK(metrics(*cache).evictions == 4);
}

TEST_CASE("the time that hits saved is counted", "[cache]") {
  ManualClock clock;
  const auto cache = open({.kernels = 1, .clock = &clock});
  const auto device = std::make_shared<DoubleDevice>();
  const auto a = program("a"), b = program("b");
  a->on_build = [&] { return clock.advance(10ms), Result<void>(); };
  b->on_build = [&] { return clock.advance(1ms), Result<void>(); };
  for (int i = 0; i < 5; ++i) get(*cache, a, device);
  CHECK(metrics(*cache).saved == 40ms);
  for (int i = 0; i < 3; ++i) get(*cache, b, device);
  CHECK(metrics(*cache).saved == 42ms);
  CHECK(metrics(*cache).hits == 6);
}

TEST_CASE("explain describes the state of a kernel", "[cache]") {
  ManualClock clock;
  const auto store = std::make_shared<test::MemoryStore>();
  const auto cache = cache::Cache::open({.kernels = 1, .store = store, .clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const auto a = program("a"), b = program("b"), host = program("host", false), broken = program("broken");
  const auto explain = [&](const auto& what) { return cache->explain(*what, *device); };
  CHECK(explain(a) ==
        "Kernel 'a' is not ready on 'd', and is not remembered to have been; its artefact is not stored.");
  std::string meanwhile;
  a->on_build = [&] {
    clock.advance(20ms);
    meanwhile = explain(a);
    return Result<void>();
  };
  get(*cache, a, device);
  CHECK(meanwhile == "Kernel 'a' has been building for 'd' for 20 ms; 0 more wait for it.");
  CHECK(explain(a) == "Kernel 'a' is ready on 'd': built in 20 ms, and found 0 times since.");
  for (int i = 0; i < 3; ++i) get(*cache, a, device);
  CHECK(explain(a) == "Kernel 'a' is ready on 'd': built in 20 ms, and found 3 times since.");
  get(*cache, b, device);
  clock.advance(15s);
  CHECK(explain(a) == "Kernel 'a' was evicted from 'd' 15 s ago to make room; its artefact is stored.");
  store->blobs.clear();
  CHECK(explain(a) == "Kernel 'a' was evicted from 'd' 15 s ago to make room; its artefact is not stored.");
  get(*cache, host, device);
  cache->reclaim(*device, 1_GiB);
  CHECK(
      explain(host) ==
      "Kernel 'host' was evicted from 'd' 0 us ago because the device needed memory; it needs no compiler.");
  broken->on_build = [] { return Result<void>(Error(Errc::compile_failed, "broken.comp:3: no.")); };
  CHECK_FALSE(cache->provide(broken, device, Instant::max()));
  clock.advance(60s);
  CHECK(explain(broken) ==
        "Kernel 'broken' could not be built for 'd' 60 s ago and is not tried again for 540 s: "
        "broken.comp:3: no.");
  clock.advance(600s);
  CHECK(explain(broken) ==
        "Kernel 'broken' could not be built for 'd' 660 s ago and is tried again at its next use: "
        "broken.comp:3: no.");
  {
    const auto held = get(*cache, a, device), too = get(*cache, b, device);
    CHECK(explain(a) ==
          "Kernel 'a' is ready on 'd': built in 20 ms, and found 0 times since."
          " There is no room for it: it ends with its last user.");
  }
  const std::uint64_t hits = metrics(*cache).hits;
  explain(a), explain(b);
  CHECK(metrics(*cache).hits == hits);  // a question is no use of the kernel
  device->lose();
  CHECK(explain(a) == "The double was lost.");
}

TEST_CASE("a new program at the address of an old one is not confused with it", "[cache]") {
  // The next program may lie at the address of the last one.
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  for (int i = 0; i < 200; ++i) {
    const std::string name = "kernel " + std::to_string(i);
    const auto one = program(name);
    for (int n = 0; n < 3; ++n)
      CHECK(base::state_of(get(*cache, one, device).executable)->artefact().kernel == name);
  }
}

TEST_CASE("a new device at the address of an old one is not confused with it", "[cache]") {
  // The next device lies at the address of the last one. Weak pointers alone do not prevent that.
  alignas(DoubleDevice) static std::byte place[sizeof(DoubleDevice)];
  const auto cache = open({.kernels = 0});
  const auto scale = program("scale"), broken = program("broken");
  for (int i = 0; i < 10; ++i) {
    const std::shared_ptr<DoubleDevice> device(new (place) DoubleDevice,
                                               [](DoubleDevice* last) { last->~DoubleDevice(); });
    broken->on_build = nullptr;
    if (i % 2 == 0) broken->on_build = [] { return Result<void>(Error(Errc::unsupported, "No.")); };
    CHECK(base::state_of(get(*cache, scale, device).executable)->device() == device);
    CHECK(cache->provide(broken, device, Instant::max()).has_value() == (i % 2 == 1));
  }
  CHECK(scale->builds == 10);
  CHECK(metrics(*cache).misses_evicted == 0);
}

TEST_CASE("a device that refuses an artefact is a failure", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  device->refuse = Error(Errc::out_of_memory, "No room.");
  CHECK(cache->provide(program("scale"), device, Instant::max()).error() == Errc::out_of_memory);
  CHECK(metrics(*cache).failures == 1);
}

TEST_CASE("an exception of a build becomes an error, and the next build runs", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  const auto thrower = program("thrower");
  thrower->on_build = []() -> Result<void> { throw std::runtime_error("boom"); };
  CHECK(cache->provide(thrower, device, Instant::max()).error().sentence() ==
        "Building kernel 'thrower' threw: boom.");
  thrower->on_build = []() -> Result<void> { throw 42; };
  CHECK(cache->provide(thrower, device, Instant::max()).error() == Errc::internal);
  thrower->on_build = []() -> Result<void> { throw std::bad_alloc(); };
  CHECK(cache->provide(thrower, device, Instant::max()).error() == Errc::out_of_memory);
  thrower->on_build = nullptr;
  CHECK(get(*cache, thrower, device).tier == CacheTier::built);
}

TEST_CASE("a kernel without a source for the device fails with its program's error", "[cache]") {
  auto cache = ShaderCache::open().value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  const auto gpu = std::make_shared<DoubleDevice>("vulkan:0", std::vector<std::string_view>{"spirv"});
  const auto refused = cache.find_or_build(*kernel, Device(gpu));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence() ==
        "Kernel 'k' has no source for 'vulkan:0' (has host; needs SpirV, Glsl or Slang).");
  CHECK(cache.metrics().failures == 0);
}

TEST_CASE("host functions are cached", "[cache]") {
  auto cache = ShaderCache::open().value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  const auto cpu = std::make_shared<DoubleDevice>("cpu:0");
  const auto one = cache.find_or_build(*kernel, Device(cpu)), two = cache.find_or_build(*kernel, Device(cpu));
  REQUIRE(one);
  CHECK(base::state_of(*one) == base::state_of(*two));
  CHECK(one->name() == "k");
  CHECK(cpu->created == 1);
  CHECK(cache.metrics().hits == 1);
  CHECK(cache.contents() == std::vector<std::string>{"k@cpu:0"});
  cache.clear();
  CHECK(cache.contents().size() == 1);  // it is in use
}

TEST_CASE("host functions evict no kernels, and idle ones leave if there are many", "[cache]") {
  const auto cache = open({.kernels = 50});
  const auto device = std::make_shared<DoubleDevice>();
  const auto kernel = program("kernel"), held = program("held", false);
  const Executable user = get(*cache, held, device).executable;
  get(*cache, kernel, device);
  for (int i = 0; i < 40; ++i) get(*cache, program("host function " + std::to_string(i), false), device);
  CHECK(metrics(*cache).kernels == 42);
  for (int i = 40; i < 1000; ++i) get(*cache, program("host function " + std::to_string(i), false), device);
  CHECK(metrics(*cache).kernels <= 51);
  CHECK(*device->alive <= 51);
  for (const auto& of_first : {kernel, held}) CHECK(get(*cache, of_first, device).tier == CacheTier::memory);
  CHECK(metrics(*cache).hits == 2);
}

TEST_CASE("a host function in a full cache evicts nothing", "[cache]") {
  const auto cache = open({.kernels = 2});
  const auto device = std::make_shared<DoubleDevice>();
  const auto a = program("a"), b = program("b"), c = program("c"), host = program("host", false);
  for (const auto& each : {a, b, host, c}) get(*cache, each, device);
  CHECK(metrics(*cache).kernels <= 3);
  CHECK(get(*cache, b, device).tier == CacheTier::memory);
  CHECK(get(*cache, a, device).tier == CacheTier::built);
}

TEST_CASE("an empty device is an error", "[cache]") {
  auto cache = ShaderCache::open().value();
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  CHECK(cache.find_or_build(*kernel, Device()).error() == Errc::invalid_argument);
}

TEST_CASE("headers of another version are refused with both versions", "[cache]") {
  Version patch = header_version, minor = header_version;
  ++patch.patch;
  ++minor.minor;
  CHECK(ShaderCache::open({}, {patch, sizeof(CacheOptions)}));
  const auto refused = ShaderCache::open({}, {minor, sizeof(CacheOptions)});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().sentence().find(to_string(minor)) != std::string::npos);
}

TEST_CASE("an eviction policy of a newer header is refused", "[cache]") {
  CHECK(ShaderCache::open({.eviction = static_cast<Eviction>(9)}).error() == Errc::invalid_argument);
}

TEST_CASE("a lost device returns its error, and its executables are removed", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>("double:0"),
             other = std::make_shared<DoubleDevice>("double:1");
  auto held = get(*cache, program("held"), device).executable;
  get(*cache, program("idle"), device);
  get(*cache, program("other"), other);
  device->lose();
  CHECK(cache->provide(program("held"), device, Instant::max()).error() == Errc::device_lost);
  CHECK(cache->provide(program("new"), device, Instant::max()).error() == Errc::device_lost);
  CHECK(cache->contents() == std::vector<std::string>{"other@double:1"});
  CHECK(*device->alive == 1);
  held = {};
  CHECK(*device->alive == 0);
}

TEST_CASE("the next build removes the executables of a lost device without requests", "[cache]") {
  const auto cache = open();
  auto lost = std::make_shared<DoubleDevice>("double:0");
  const auto alive = lost->alive;
  const std::weak_ptr<DoubleDevice> watch = lost;
  get(*cache, program("a"), lost);
  lost->lose();
  lost.reset();
  CHECK_FALSE(watch.expired());
  get(*cache, program("b"), std::make_shared<DoubleDevice>("double:1"));
  CHECK(watch.expired());
  CHECK(*alive == 0);
}

TEST_CASE("the cost of a build is zero if it is ready, otherwise the time of earlier builds there",
          "[cache]") {
  ManualClock clock;
  const auto cache = open({.clock = &clock});
  const auto device = std::make_shared<DoubleDevice>("double:0"),
             other = std::make_shared<DoubleDevice>("double:1");
  const auto a = program("a"), b = program("b"), c = program("c");
  CHECK(cache->build_cost(*a, *device) == Duration{});
  a->on_build = [&] { return clock.advance(10ms), Result<void>(); };
  b->on_build = [&] { return clock.advance(20ms), Result<void>(); };
  get(*cache, a, device);
  CHECK(cache->build_cost(*a, *device) == std::nullopt);
  CHECK(cache->build_cost(*b, *device) == Duration(10ms));
  get(*cache, b, device);
  CHECK(cache->build_cost(*c, *device) == Duration(15ms));
  CHECK(cache->build_cost(*c, *other) == Duration{});
  CHECK(metrics(*cache).hits == 0);  // a question is no use of the kernel
}

TEST_CASE("a deadline that has passed starts no build, and a hit needs none", "[cache]") {
  ManualClock clock;
  clock.advance(1s);
  const auto cache = open({.clock = &clock});
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale", false);  // it is built on this thread
  const auto late = cache->provide(scale, device, clock.now());
  REQUIRE_FALSE(late);
  CHECK(late.error().code() == Errc::timed_out);
  CHECK(late.error().sentence() ==
        "Kernel 'scale' is not built for 'double:0', and the deadline has passed.");
  CHECK(scale->builds == 0);
  CHECK(cache->provide(scale, device, clock.now() + 1ns));
  CHECK(cache->provide(scale, device, clock.now() - 1ns));
}

TEST_CASE("reclaim frees idle executables of one device, least recently used first, until enough is free",
          "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>("double:0"),
             other = std::make_shared<DoubleDevice>("double:1");
  const auto a = program("a"), b = program("b"), c = program("c"), d = program("d");
  get(*cache, a, device);
  const auto held = get(*cache, b, device).executable;
  get(*cache, c, device);
  get(*cache, d, device);
  get(*cache, a, other);
  get(*cache, a, device);
  CHECK(cache->reclaim(*device, 0_B) == 0_B);
  CHECK(cache->reclaim(*device, 1_B) == 100_B);
  CHECK(cache->contents() ==
        std::vector<std::string>{"a@double:0", "a@double:1", "d@double:0", "b@double:0"});
  CHECK(cache->reclaim(*device, 1_GiB) == 200_B);
  CHECK(cache->contents() == std::vector<std::string>{"a@double:1", "b@double:0"});
  CHECK(metrics(*cache).evictions == 3);
  CHECK(*device->alive == 1);
}

TEST_CASE("clear removes idle executables", "[cache]") {
  const auto cache = open();
  const auto device = std::make_shared<DoubleDevice>();
  const auto held = get(*cache, program("held"), device).executable;
  get(*cache, program("idle"), device);
  cache->clear();
  CHECK(cache->contents() == std::vector<std::string>{"held@double:0"});
  CHECK(*device->alive == 1);
  CHECK(metrics(*cache).evictions == 0);
}

TEST_CASE("executables outlive their cache", "[cache]") {
  const auto device = std::make_shared<DoubleDevice>();
  Executable held;
  {
    const auto cache = open();
    held = get(*cache, program("held"), device).executable;
    get(*cache, program("idle"), device);
  }
  CHECK(*device->alive == 1);
  CHECK(held.name() == "held");
}

TEST_CASE("copies of a ShaderCache share one cache", "[cache]") {
  auto one = ShaderCache::open().value();
  ShaderCache two = one;
  const auto kernel =
      Kernel<ReadWrite<float>>::make({.name = "k", .sources = {host([](Range, std::span<float>) {})}});
  const auto cpu = std::make_shared<DoubleDevice>("cpu:0");
  const auto held = one.find_or_build(*kernel, Device(cpu));
  CHECK(two.metrics().kernels == 1);
  CHECK(&cache::of(one) == &cache::of(two));
}

TEST_CASE("a build is logged at level debug", "[cache]") {
  std::vector<std::string> messages;
  const auto cache = open({.log = [&](const LogRecord& record) {
    if (record.room == "cache" && record.level == LogLevel::debug) messages.emplace_back(record.text);
  }});
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale");
  get(*cache, scale, device);
  get(*cache, scale, device);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("Kernel 'scale' for 'double:0': built in ") == 0);
}
