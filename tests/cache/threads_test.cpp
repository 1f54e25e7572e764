#include <stdexcept>
#include <thread>

#include "base/internals.hpp"
#include "base/worker.hpp"
#include "cache/cache.hpp"
#include "doubles.hpp"
#include "support/catch.hpp"
#include "support/double_device.hpp"
#include "support/stop_point.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::DoubleDevice;
using test::metrics;
using test::program;
using test::StopPoint;

namespace {

void wait_until_joined(const cache::Cache& cache, std::uint64_t n) {
  (void)test::becomes_true([&] { return metrics(cache).joined >= n; });
}

/// Requests a kernel whose build stops at `building`, as the `number`th thread there, and lets the
/// deadline of the request pass meanwhile. Returns the error of the request.
Error timed_out_build(cache::Cache& cache, ManualClock& clock,
                      const std::shared_ptr<test::CountingProgram>& slow,
                      const std::shared_ptr<DoubleDevice>& device, StopPoint& building, int number = 1) {
  std::optional<Result<device::Provided>> late;
  test::Thread requests([&] { late = cache.provide(slow, device, clock.now() + 1h); });
  building.await(number);
  clock.advance(1h);
  requests.join();
  REQUIRE_FALSE(*late);
  CHECK(late->error() == Errc::timed_out);
  return late->error();
}

}  // namespace

TEST_CASE("sixteen threads that want one kernel build it once", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale");
  // The build ends only when the other fifteen threads wait for it. This is the widest window in
  // which two threads could build.
  scale->on_build = [&] { return wait_until_joined(*cache, 15), Result<void>(); };
  std::vector<std::optional<Result<device::Provided>>> results(16);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] { result = cache->provide(scale, device, Instant::max()); });
  for (auto& thread : threads) thread.join();
  CHECK(scale->builds == 1);
  CHECK(device->created == 1);
  for (const auto& result : results) {
    REQUIRE(result->has_value());
    CHECK(base::state_of((*result)->executable) == base::state_of((*results[0])->executable));
    CHECK((*result)->tier == CacheTier::built);
  }
  CHECK(metrics(*cache).joined == 15);
  CHECK(metrics(*cache).misses == 1);
}

TEST_CASE("all waiters of a build receive its failure", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto broken = program("broken");
  broken->on_build = [&]() -> Result<void> {
    wait_until_joined(*cache, 7);
    return Error(Errc::unavailable, "No.");
  };
  std::vector<std::optional<Result<device::Provided>>> results(8);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] { result = cache->provide(broken, device, Instant::max()); });
  for (auto& thread : threads) thread.join();
  CHECK(broken->builds == 1);
  for (const auto& result : results) {
    REQUIRE_FALSE(*result);
    CHECK(result->error().sentence() == "No.");
  }
  CHECK(metrics(*cache).failures == 1);
  broken->on_build = nullptr;
  CHECK(cache->provide(broken, device, Instant::max()));
  CHECK(broken->builds == 2);
}

TEST_CASE("a wait ends at the deadline, and the build continues", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto slow = program("slow");
  StopPoint building;
  slow->on_build = [&] { return building.pass(), Result<void>(); };
  std::optional<Result<device::Provided>> built;
  std::thread builder([&] { built = cache->provide(slow, device, Instant::max()); });
  building.await();
  for (const Instant until : {Clock::steady().now() + 5ms, Clock::steady().now(), Instant{}}) {
    const auto waited = cache->provide(slow, device, until);
    REQUIRE_FALSE(waited);
    CHECK(waited.error().code() == Errc::timed_out);
    CHECK(waited.error().sentence() ==
          "Kernel 'slow' was still being built for 'double:0' when the deadline passed.");
  }
  building.open();
  builder.join();
  REQUIRE(built->has_value());
  CHECK(slow->builds == 1);
  CHECK(cache->provide(slow, device, Clock::steady().now())->tier == CacheTier::memory);
}

TEST_CASE("a build that is begun ahead runs on its own thread, once", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto slow = program("slow"), broken = program("broken");
  StopPoint building;
  slow->on_build = [&] { return building.pass(), Result<void>(); };
  CHECK(cache->begin_build(slow, device));
  building.await();
  CHECK(cache->begin_build(slow, device));
  CHECK(cache->build_cost(*slow, *device).has_value());
  building.open();
  REQUIRE(cache->await_builds(Instant::max()));
  CHECK(cache->begin_build(slow, device));
  CHECK(cache->build_cost(*slow, *device) == std::nullopt);
  CHECK(slow->builds == 1);
  CHECK(metrics(*cache).joined == 0);
  CHECK(cache->provide(slow, device, Instant::max())->tier == CacheTier::memory);
  broken->on_build = [] { return Result<void>(Error(Errc::compile_failed, "No.")); };
  (void)cache->begin_build(broken, device).has_value();  // its thread may be as fast
  REQUIRE(cache->await_builds(Instant::max()));
  const auto again = cache->begin_build(broken, device);
  REQUIRE_FALSE(again);
  CHECK(again.error().sentence() == "No.");
  CHECK(broken->builds == 1);
}

TEST_CASE("a build does not block other kernels", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto slow = program("slow"), ready = program("ready"), other = program("other");
  REQUIRE(cache->provide(ready, device, Instant::max()));
  StopPoint building;
  slow->on_build = [&] { return building.pass(), Result<void>(); };
  std::thread builder([&] { (void)cache->provide(slow, device, Instant::max()).has_value(); });
  building.await();
  CHECK(cache->provide(ready, device, Instant::max())->tier == CacheTier::memory);
  CHECK(cache->provide(other, device, Instant::max())->tier == CacheTier::built);
  CHECK(cache->build_cost(*slow, *device).has_value());
  CHECK(cache->contents().size() == 2);
  CHECK(cache->reclaim(*device, 1_GiB) == 200_B);
  cache->clear();
  CHECK(metrics(*cache).misses == 2);
  building.open();
  builder.join();
  CHECK(cache->contents() == std::vector<std::string>{"slow@double:0"});
}

TEST_CASE("a build may use the cache", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto inner = program("inner"), outer = program("outer");
  outer->on_build = [&]() -> Result<void> {
    if (auto provided = cache->provide(inner, device, Instant::max()); !provided) return provided.error();
    return {};
  };
  CHECK(cache->provide(outer, device, Instant::max()));
  CHECK(inner->builds == 1);
}

TEST_CASE("many threads with many kernels in a small cache receive the right executables", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 5}).value();
  const auto device = std::make_shared<DoubleDevice>("double:0"),
             second = std::make_shared<DoubleDevice>("double:1");
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  for (int i = 0; i < 20; ++i) programs.push_back(program("kernel" + std::to_string(i)));
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  constexpr int uses = 3000, users = 8;
  std::vector<std::thread> threads;
  for (int t = 0; t < users; ++t)
    threads.emplace_back([&, t] {
      std::uint32_t random = static_cast<std::uint32_t>(t) * 77 + 1;
      std::vector<Executable> held(3);
      for (int i = 0; i < uses; ++i) {
        random = random * 1664525u + 1013904223u;
        const auto& wanted = programs[(random >> 8) % programs.size()];
        const auto& where = random >> 28 & 1 ? device : second;
        auto provided = cache->provide(wanted, where, Instant::max());
        if (!provided || base::state_of(provided->executable)->artefact().kernel != wanted->name() ||
            base::state_of(provided->executable)->device() != where)
          ++wrong;
        else
          held[random >> 16 & 1] = provided->executable;
      }
    });
  // Meanwhile the metrics are consistent.
  std::thread watcher([&] {
    while (!stop) {
      const auto still = cache->freeze();
      const CacheMetrics one = cache->metrics_locked(), two = cache->metrics_locked();
      if (one.hits != two.hits || one.misses != two.misses || one.kernels > one.misses ||
          one.kernels + one.evictions > one.misses)
        ++wrong;
    }
  });
  std::thread cleaner([&] {
    while (!stop) {
      cache->reclaim(*device, 150_B);
      cache->contents();
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  watcher.join();
  cleaner.join();
  CHECK(wrong == 0);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.hits + counted.misses + counted.joined == uses * users);
  CHECK(counted.kernels <= 5);
  CHECK(counted.kernels + counted.evictions == counted.misses);
  CHECK(*device->alive + *second->alive == static_cast<int>(counted.kernels));
}

TEST_CASE("threads receive the right executables while others evict, clear and lose devices", "[cache]") {
  const auto cache = cache::Cache::open({.kernels = 6}).value();
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  for (int i = 0; i < 8; ++i) programs.push_back(program("kernel" + std::to_string(i)));
  std::mutex mutex;
  auto device = std::make_shared<DoubleDevice>();
  std::atomic<int> wrong{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4000; ++i) {
        std::shared_ptr<DoubleDevice> where;
        {
          const std::lock_guard lock(mutex);
          where = device;
        }
        // Mostly the same kernel again, so that it is found without its key.
        const auto& wanted = programs[static_cast<std::size_t>(i / 50 + t) % programs.size()];
        const auto provided = cache->provide(wanted, where, Instant::max());
        if (provided ? base::state_of(provided->executable)->artefact().kernel != wanted->name() ||
                           base::state_of(provided->executable)->device() != where
                     : provided.error() != Errc::device_lost)
          ++wrong;
      }
    });
  std::thread breaker([&] {
    for (int i = 0; !stop; ++i) {
      if (i % 8 == 0) {
        const auto next = std::make_shared<DoubleDevice>();
        const std::lock_guard lock(mutex);
        device->lose();
        device = next;
      }
      if (i % 3 == 0) cache->clear();
      cache->explain(*programs[static_cast<std::size_t>(i) % programs.size()], *device);
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  stop = true;
  breaker.join();
  CHECK(wrong == 0);
  const CacheMetrics counted = metrics(*cache);
  CHECK(counted.kernels + counted.evictions + counted.cleared + counted.lost == counted.misses);
}

TEST_CASE("uses by several threads have one order", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>("d");
  const std::vector programs{program("a"), program("b"), program("c"), program("d")};
  for (const auto& one : programs) REQUIRE(cache->provide(one, device, Instant::max()));
  std::uint32_t random = 1;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string> used;
    for (int n = 0; n < 6; ++n) {
      random = random * 1664525u + 1013904223u;
      const auto& one = programs[random >> 30];
      std::thread([&] { (void)cache->provide(one, device, Instant::max()).has_value(); }).join();
      const std::string label = std::string(one->name()) + "@d";
      std::erase(used, label);
      used.insert(used.begin(), label);
    }
    auto contents = cache->contents();
    contents.resize(used.size());
    if (contents != used) FAIL("round " << i);
  }
}

TEST_CASE("while the cache is frozen no number moves", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto scale = program("scale");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      while (!stop) (void)cache->provide(scale, device, Instant::max()).has_value();
    });
  std::uint64_t seen = 0;
  bool moved = false;
  for (int i = 0; i < 200; ++i) {
    const auto still = cache->freeze();
    const std::uint64_t before = cache->metrics_locked().hits;
    std::this_thread::yield();
    moved |= cache->metrics_locked().hits != before;
    seen = before;
  }
  stop = true;
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(moved);
  CHECK(metrics(*cache).hits >= seen);
}

TEST_CASE("a call returns at its deadline, and later calls use the build's result", "[cache]") {
  ManualClock clock;
  const auto cache = cache::Cache::open({.clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto slow = program("slow", true);
  StopPoint building;
  slow->on_build = [&] { return building.pass(), Result<void>(); };
  const Error late = timed_out_build(*cache, clock, slow, device, building);
  CHECK(late.sentence() == "Kernel 'slow' was still being built for 'double:0' when the deadline passed.");
  CHECK(metrics(*cache).failures == 0);
  CHECK(metrics(*cache).kernels == 0);
  std::optional<Result<device::Provided>> patient;
  std::thread next([&] { patient = cache->provide(slow, device, Instant::max()); });
  wait_until_joined(*cache, 1);
  building.open();
  next.join();
  REQUIRE(patient->has_value());
  CHECK((*patient)->tier == CacheTier::built);
  CHECK(slow->builds == 1);
  CHECK(cache->provide(slow, device, clock.now())->tier == CacheTier::memory);
}

TEST_CASE("a call with a deadline receives the failure of a build", "[cache]") {
  const auto cache = cache::Cache::open({}).value();
  const auto device = std::make_shared<DoubleDevice>();
  const auto broken = program("broken", true);
  broken->on_build = []() -> Result<void> { return Error(Errc::compile_failed, "No."); };
  for (int i = 0; i < 2; ++i)
    CHECK(cache->provide(broken, device, Clock::steady().now() + 1min).error().sentence() == "No.");
  CHECK(broken->builds == 1);
  broken->on_build = []() -> Result<void> { throw std::runtime_error("a bug"); };
  cache->clear();
  CHECK(cache->provide(broken, device, Clock::steady().now() + 1min).error() == Errc::internal);
}

TEST_CASE("await_builds waits for the builds whose callers timed out, and for their threads", "[cache]") {
  ManualClock clock;
  const auto cache = cache::Cache::open({.clock = &clock}).value();
  const auto device = std::make_shared<DoubleDevice>();
  StopPoint building;
  auto slow = program("slow", true);
  slow->on_build = [&] { return building.pass(), Result<void>(); };
  CHECK(cache->await_builds(Instant::min()));
  (void)timed_out_build(*cache, clock, slow, device, building);
  CHECK_FALSE(cache->await_builds(Instant::min()));
  bool is_over = false;
  test::Thread waits([&] { is_over = cache->await_builds(Instant::max()); });
  waits.await_parked();
  CHECK_FALSE(waits.has_ended());
  building.open();
  waits.join();
  CHECK(is_over);
  cache->clear();
  CHECK(slow.use_count() == 1);  // no thread has it
}

TEST_CASE("the destruction of a cache waits for builds in flight and joins their threads", "[cache]") {
  const int threads = base::Worker::alive();
  const auto device = std::make_shared<DoubleDevice>();
  std::atomic<int> over{0};
  StopPoint building;
  std::vector<std::shared_ptr<test::CountingProgram>> programs;
  for (int i = 0; i < 3; ++i) {
    programs.push_back(program("slow " + std::to_string(i), true));
    programs.back()->on_build = [&] { return building.pass(), ++over, Result<void>(); };
  }
  {
    ManualClock clock;
    auto cache = cache::Cache::open({.clock = &clock}).value();
    for (int i = 0; i < 3; ++i)
      (void)timed_out_build(*cache, clock, programs[static_cast<std::size_t>(i)], device, building, i + 1);
    CHECK(base::Worker::alive() > threads);
    int over_before = 0;
    test::Thread ends([&] {
      cache.reset();
      over_before = over;
    });
    ends.await_parked();
    CHECK_FALSE(ends.has_ended());
    building.open();
    ends.join();
    CHECK(over_before == 3);
  }
  CHECK(base::Worker::alive() == threads);
  CHECK(*device->alive == 0);
  {
    const auto cache = cache::Cache::open({}).value();
    programs[0]->on_build = nullptr;
    CHECK(cache->provide(programs[0], device, Clock::steady().now() + 1min));
    CHECK(base::Worker::alive() == threads);  // the destructor waited for it
  }
}

TEST_CASE("compilers are initialized on a thread that ends by itself or with the cache", "[cache]") {
  const int before = base::Worker::alive();
  {
    const auto cold = cache::Cache::open({}).value();
    CHECK(base::Worker::alive() == before);
    const auto warm = cache::Cache::open({.warm_compilers = true}).value();
    while (base::Worker::alive() > before) std::this_thread::yield();
  }
  (void)cache::Cache::open({.warm_compilers = true}).value();  // ends at once
  CHECK(base::Worker::alive() == before);
}
