// Leases of contexts on devices that refuse lanes, fail and are lost.
#include <wye/pool/context_pool.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_pool.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::await_waiter;
using test::CountingClock;
using test::pool_of;
using test::Scripted;
using test::scripted;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a pool makes a lane when one is first needed, and at most lanes_per_device", "[pool]") {
  for (const std::uint32_t most : {1u, 2u, 5u}) {
    const Scripted device = scripted("cuda:0");
    ContextPool pool = pool_of({device}, {.lanes_per_device = most});
    CHECK(device->count(Step::create_lane) == 0);
    std::vector<Lease> leases;
    std::set<std::string> ids;
    for (std::uint32_t i = 0; i < most; ++i) {
      leases.push_back(pool.try_lease().value());
      ids.insert(leases.back().id());
      CHECK(device->count(Step::create_lane) == static_cast<int>(i + 1));
    }
    CHECK(ids.size() == most);
    CHECK(pool.try_lease().error() == Errc::unavailable);
    leases.clear();
    for (std::uint32_t i = 0; i < 2 * most; ++i) CHECK(pool.try_lease());
    CHECK(device->count(Step::create_lane) == static_cast<int>(most));  // they are used again
    CHECK(pool.metrics().contexts == most);
    CHECK(pool.metrics().active == 0);
  }
}

TEST_CASE("a lane that fails is replaced for the next lease, and its first error stays", "[pool]") {
  for (const Step step : {Step::submit, Step::wait}) {
    const Scripted device = scripted("cuda:0");
    std::atomic<int> failures{1};
    device->set_script([&failures, step](Step now) -> std::optional<Error> {
      if (now != step || failures.fetch_sub(1) <= 0) return std::nullopt;
      return Error(Errc::unavailable, "The script fails this step.");
    });
    ContextPool pool = pool_of({device}, {.lanes_per_device = 1});
    const std::vector<float> values(4, 2.0f);
    {
      auto lease = pool.lease().value();
      auto buffer = lease.buffer<float>(4).value();
      lease.upload(values, buffer);
      CHECK(lease.wait().error() == Errc::unavailable);
      CHECK(lease.wait().error().sentence() == "The script fails this step.");
    }
    auto lease = pool.lease().value();
    CHECK(device->count(Step::create_lane) == 2);
    auto buffer = lease.buffer<float>(4).value();
    std::vector<float> out(4);
    lease.upload(values, buffer);
    lease.download(buffer, out);
    CHECK(lease.wait());
    CHECK(out == values);
  }
}

TEST_CASE("a device that makes no lane is passed over for one that does", "[pool]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  first->fail_at(Step::create_lane, Errc::out_of_memory);
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 1});
  auto lease = pool.lease();
  REQUIRE(lease);
  CHECK(lease->device().id() == "vulkan:0");
  const auto none = pool.lease({.on = "cuda:0"});
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::out_of_memory);
  CHECK(none.error().describe().find("while creating context 'cuda:0#0'") != std::string::npos);
  CHECK(pool.metrics().active == 1);
}

TEST_CASE("a device that makes fewer lanes than asked for shares those that it made", "[pool]") {
  const Scripted device = scripted("cuda:0");
  std::atomic<int> lanes{2};
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::create_lane || lanes.fetch_sub(1) > 0) return std::nullopt;
    return Error(Errc::out_of_memory, "The device has memory for two lanes.");
  });
  ContextPool pool = pool_of({device}, {.lanes_per_device = 8});
  std::optional<Lease> a = pool.lease().value(), b = pool.lease().value();
  const auto third = pool.try_lease();
  REQUIRE_FALSE(third);
  CHECK(third.error() == Errc::unavailable);
  CHECK(third.error().describe().find("The device has memory for two lanes.") != std::string::npos);
  const std::string id = a->id();
  a.reset();
  CHECK(pool.try_lease()->id() == id);
}

TEST_CASE("a lost device is passed over, and all lost devices answer device_lost", "[pool]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 1});
  std::optional<Lease> lease = pool.lease().value();
  CHECK(lease->device().id() == "cuda:0");
  first->lose();
  auto other = pool.try_lease();
  REQUIRE(other);
  CHECK(other->device().id() == "vulkan:0");
  CHECK(pool.try_lease({.on = "cuda"}).error() == Errc::device_lost);
  lease.reset();  // a context of a lost device
  CHECK(pool.try_lease({.on = "cuda"}).error() == Errc::device_lost);
  second->lose();
  const auto none = pool.lease();
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::device_lost);
  CHECK(none.error().describe().find("while leasing a context") != std::string::npos);
}

TEST_CASE("a context that is returned goes to the first waiter and not to a later call", "[pool]") {
  const CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  constexpr int waiters = 6;
  std::mutex mutex;
  std::vector<int> served;
  std::vector<std::thread> threads;
  for (int i = 0; i < waiters; ++i) {
    const int before = clock.readings;
    threads.emplace_back([&, i] {
      auto lease = pool.lease().value();
      CHECK_NOTHROW(lease.id());
      CHECK_FALSE(pool.try_lease().has_value());  // the only context is this thread's
      const std::lock_guard lock(mutex);
      served.push_back(i);
    });
    await_waiter(pool, clock, before);
  }
  held.reset();
  for (auto& thread : threads) thread.join();
  CHECK(served == std::vector<int>{0, 1, 2, 3, 4, 5});
  CHECK(pool.try_lease());
  CHECK(pool.metrics().timeouts == 0);
}

TEST_CASE("a lease that times out leaves the queue, and the next waiter is served", "[pool]") {
  const CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  CHECK(pool.lease({.deadline = Deadline(0s)}).error() == Errc::timed_out);
  CHECK(pool.lease({.deadline = Deadline(2ms)}).error() == Errc::timed_out);
  CHECK(pool.metrics().timeouts == 1);  // the first call did not wait
  const int before = clock.readings;
  std::promise<std::string> served;
  std::thread waiter([&] { served.set_value(pool.lease().value().id()); });
  await_waiter(pool, clock, before);
  CHECK(pool.lease({.deadline = Deadline(2ms)}).error() == Errc::timed_out);
  const std::string id = held->id();
  held.reset();
  waiter.join();
  CHECK(served.get_future().get() == id);
  CHECK(pool.metrics().timeouts == 2);
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("a lease that another thread destroys returns its context", "[pool]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 60s});
  for (int i = 0; i < 20; ++i) {
    std::thread([lease = pool.lease().value()]() mutable { const Lease gone = std::move(lease); }).detach();
    CHECK(pool.lease());  // waits for the other thread
  }
  CHECK(device->count(Step::create_lane) == 1);
}

TEST_CASE("a closed pool refuses leases, wakes every waiter and keeps outstanding leases valid", "[pool]") {
  const CountingClock clock;
  const Scripted device = scripted("cuda:0");
  std::optional<ContextPool> pool =
      pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool->lease().value();
  std::atomic<int> closed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    const int before = clock.readings;
    threads.emplace_back([&] { closed += pool->lease().error() == Errc::closed; });
    await_waiter(*pool, clock, before);
  }
  pool->close();
  for (auto& thread : threads) thread.join();
  CHECK(closed == 3);
  CHECK(pool->lease().error() == Errc::closed);
  CHECK(pool->try_lease().error() == Errc::closed);
  auto buffer = held->buffer<float>(4).value();
  const std::vector<float> values(4, 2.0f);
  std::vector<float> out(4);
  held->upload(values, buffer);
  held->download(buffer, out);
  CHECK(held->wait());
  CHECK(out == values);
  // The lease holds the pool.
  pool.reset();
  CHECK(device->lanes_alive() == 1);
  buffer = Buffer();
  held.reset();
  CHECK(device->lanes_alive() == 0);
  CHECK(device->buffers_alive() == 0);
}

TEST_CASE("threads that lease on random devices, which fail and return lanes, leave nothing behind",
          "[pool]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0");
  std::atomic<unsigned> made{0};
  for (const Scripted& device : {first, second})
    device->set_script([&](Step step) -> std::optional<Error> {
      const unsigned n = ++made;
      if (step == Step::create_lane && n % 5 == 0) return Error(Errc::out_of_memory, "No lane this time.");
      if (step == Step::submit && n % 7 == 0) return Error(Errc::unavailable, "No submission this time.");
      return std::nullopt;
    });
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 2, .lease_timeout = 60s});
  std::atomic<std::uint64_t> leased{0}, refused{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      constexpr std::array<std::string_view, 3> on{"", "cuda", "vulkan:0"};
      for (int i = 0; i < 100; ++i) {
        auto lease = pool.lease({.on = on[random() % on.size()]});
        if (!lease) {
          ++refused;
          wrong += lease.error() != Errc::out_of_memory;
          continue;
        }
        ++leased;
        auto buffer = lease->buffer<std::uint32_t>(8);
        if (!buffer) continue;
        const std::vector<std::uint32_t> values(8, t);
        std::vector<std::uint32_t> out(8);
        lease->upload(values, *buffer);
        lease->download(*buffer, out);
        if (lease->wait()) wrong += out != values;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(leased + refused == 600);
  const PoolMetrics metrics = pool.metrics();
  CHECK(metrics.active == 0);
  CHECK(metrics.bytes == 0_B);
  CHECK(metrics.timeouts == 0);
  CHECK(first->lanes_alive() <= 2);
  CHECK(second->lanes_alive() <= 2);
  CHECK(first->buffers_alive() + second->buffers_alive() == 0);
}
