// Order and deadlines of the threads that wait for a lease.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::CountingClock;
using test::fail;
using test::pool_of;
using test::scripted;
using test::Waiting;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a returned context goes to the first waiter that may use its device", "[pool]") {
  const CountingClock clock;
  ContextPool pool = pool_of({scripted("cuda:0"), scripted("vulkan:0")},
                             {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> cuda = pool.lease({.on = "cuda"}).value();
  std::optional<Lease> vulkan = pool.lease({.on = "vulkan"}).value();
  Waiting for_cuda(pool, clock, {.on = "cuda"}), for_any(pool, clock),
      for_vulkan(pool, clock, {.on = "vulkan:0"});
  vulkan.reset();
  vulkan = for_any.get().value();
  CHECK(vulkan->device().id() == "vulkan:0");
  CHECK_FALSE(for_cuda.has_returned());
  CHECK_FALSE(for_vulkan.has_returned());
  vulkan.reset();
  CHECK(for_vulkan.get().value().id() == "vulkan:0#0");
  CHECK_FALSE(for_cuda.has_returned());
  cuda.reset();
  CHECK(for_cuda.get().value().id() == "cuda:0#0");
}

TEST_CASE("a waiter for a feature is passed over by devices without it", "[pool]") {
  const CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0"), scripted("vulkan:0", AdapterType::discrete, {Feature::int8})},
              {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> cuda = pool.lease({.on = "cuda"}).value();
  std::optional<Lease> vulkan = pool.lease({.on = "vulkan"}).value();
  Waiting waiter(pool, clock, {.needs = {Feature::int8}});
  cuda.reset();
  CHECK(pool.try_lease()->id() == "cuda:0#0");  // it is idle: the waiter did not get it
  CHECK_FALSE(waiter.has_returned());
  vulkan.reset();
  CHECK(waiter.get().value().id() == "vulkan:0#0");
}

TEST_CASE("a waiter whose context gets no lane waits again in its place", "[pool]") {
  const CountingClock clock;
  const auto device = scripted("cuda:0");
  std::atomic<bool> refuses{false};
  device->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::create_lane || !refuses) return std::nullopt;
    return Error(Errc::out_of_memory, "The device has no memory.");
  });
  ContextPool pool = pool_of({device}, {.lanes_per_device = 2, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> a = pool.lease().value(), b = pool.lease().value();
  Waiting first(pool, clock), second(pool, clock);
  refuses = true;
  fail(*b);
  const int before = clock.readings;
  b.reset();  // goes to the first waiter, without a lane
  // The return reads the clock, and the waiter twice when it waits again.
  test::await_waiter(pool, clock, before);
  CHECK(device->count(Step::create_lane) == 3);
  a.reset();
  {
    const Lease lease = first.get().value();
    CHECK_FALSE(second.has_returned());
  }
  CHECK(second.get());
}

TEST_CASE("a waiter does not get a context of a device that was lost", "[pool]") {
  const CountingClock clock;
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  Waiting first(pool, clock), second(pool, clock);
  device->lose();
  held.reset();  // its lane has not failed
  CHECK(first.get().error() == Errc::device_lost);
  CHECK(second.get().error() == Errc::device_lost);
  CHECK(pool.metrics().timeouts == 0);
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("waiters of a lost device that may use another device keep waiting for it, in order", "[pool]") {
  const CountingClock clock;
  const auto cuda = scripted("cuda:0"), vulkan = scripted("vulkan:0");
  ContextPool pool = pool_of({cuda, vulkan}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> a = pool.lease({.on = "cuda"}).value(), b = pool.lease({.on = "vulkan"}).value();
  Waiting first(pool, clock), only_cuda(pool, clock, {.on = "cuda"}), second(pool, clock);
  cuda->lose();
  a.reset();
  CHECK(only_cuda.get().error() == Errc::device_lost);
  CHECK_FALSE(first.has_returned());
  CHECK_FALSE(second.has_returned());
  b.reset();
  b = first.get().value();
  CHECK(b->device().id() == "vulkan:0");
  CHECK_FALSE(second.has_returned());
  b.reset();
  CHECK(second.get().value().device().id() == "vulkan:0");
}

TEST_CASE("a waiter whose devices were lost gets device_lost at its deadline, not timed_out", "[pool]") {
  const CountingClock clock;
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1, .clock = &clock});
  const Lease held = pool.lease().value();
  Waiting waiter(pool, clock, {.deadline = 200ms});
  device->lose();  // while its only context is leased
  CHECK(waiter.get().error() == Errc::device_lost);
  CHECK(pool.metrics().timeouts == 0);
}

TEST_CASE("a deadline is of the pool's clock", "[pool]") {
  ManualClock clock;  // the steady clock is far ahead of it
  clock.advance(1h);
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .clock = &clock});
  const Lease held = pool.lease().value();
  CHECK(pool.lease({.deadline = Deadline(clock.now())}).error() == Errc::timed_out);
  CHECK(pool.lease({.deadline = Deadline(clock.now() - 1s)}).error() == Errc::timed_out);
  CHECK(pool.lease({.deadline = Deadline(clock.now() + 5ms)}).error() == Errc::timed_out);
  CHECK(pool.metrics().timeouts == 1);  // the others did not wait
  const Instant before = Clock::steady().now();
  CHECK(pool.lease({.deadline = Deadline(clock.now() + 30ms)}).error() == Errc::timed_out);
  CHECK(Clock::steady().now() - before >= 30ms);
}

TEST_CASE("a request without a deadline waits for the timeout of the pool", "[pool]") {
  ContextPool none = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 0s});
  const Lease held = none.lease().value();
  const auto at_once = none.lease();
  CHECK(at_once.error() == Errc::timed_out);
  CHECK(at_once.error().sentence().starts_with("No context of 'cuda:0' became free within 0 s "));
  ContextPool some = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 25ms});
  const Lease other = some.lease().value();
  const Instant before = Clock::steady().now();
  const auto later = some.lease();
  CHECK(Clock::steady().now() - before >= 25ms);
  CHECK(later.error().sentence().starts_with("No context of 'cuda:0' became free within 0.025 s "));
}

TEST_CASE("a request that gets no context names its devices, and the oldest lease of them", "[pool]") {
  ManualClock clock;
  ContextPool pool = pool_of({scripted("cuda:0"), scripted("cuda:1"), scripted("vulkan:0")},
                             {.lanes_per_device = 1, .clock = &clock});
  const Lease oldest = pool.lease({.on = "vulkan"}).value();
  clock.advance(90s);
  const Lease a = pool.lease({.on = "cuda:1"}).value();
  clock.advance(2500ms);
  const Lease b = pool.lease({.on = "cuda:0"}).value();
  clock.advance(500ms);
  const auto none = pool.try_lease({.on = "cuda"});
  CHECK(none.error() == Errc::unavailable);
  CHECK(none.error().sentence() ==
        "No context of 'cuda:0', 'cuda:1' is free (2 of 2 leased; oldest for 3.0 s).");
  CHECK(pool.try_lease().error().sentence() ==
        "No context of 'cuda:0', 'cuda:1', 'vulkan:0' is free (3 of 3 leased; oldest for 93.0 s).");
  CHECK(pool.metrics().timeouts == 0);
}

TEST_CASE("waiters that time out do not change the order of the others", "[pool]") {
  const CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  Waiting a(pool, clock, {.deadline = 200ms}), b(pool, clock), c(pool, clock, {.deadline = 250ms}),
      d(pool, clock), e(pool, clock, {.deadline = 200ms});
  for (Waiting* late : {&a, &c, &e}) CHECK(late->get().error() == Errc::timed_out);
  held.reset();
  held = b.get().value();
  CHECK_FALSE(d.has_returned());
  held.reset();
  CHECK(d.get());
  CHECK(pool.metrics().timeouts == 3);
}

TEST_CASE("a context that passes to a waiter stays active, and counts as a lease", "[pool]") {
  const CountingClock clock;
  ContextPool pool =
      pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = pool.lease().value();
  Waiting waiter(pool, clock);
  held.reset();
  CHECK(pool.metrics().active == 1);  // no other thread can get it
  CHECK(pool.try_lease().error() == Errc::unavailable);
  CHECK(pool.metrics().leases == 2);
  const auto lease = waiter.get();
  CHECK(pool.contexts().at(0).active);
}

TEST_CASE("a waiter gets a context that another thread returns during its last lease", "[pool]") {
  // Threads pass one context on, each with a deadline that none reaches.
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lanes_per_device = 1, .lease_timeout = 60s});
  std::atomic<int> failed{0}, inside{0}, both{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto lease = pool.lease();
        if (!lease) {
          ++failed;
          continue;
        }
        both += ++inside != 1;
        --inside;
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(both == 0);
  CHECK(pool.metrics().leases == 1800);
}

TEST_CASE("a closed pool leases for transfers, and waits for its own timeout at most", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 10ms});
  pool::Pool& state = *base::state_of(pool);
  pool.close();
  CHECK(pool.lease().error() == Errc::closed);
  CHECK(state.leases().lease_on(*device, state.clock().now()).error() == Errc::closed);
  const auto transfer = state.leases().lease_for(*device, Instant::max());
  REQUIRE(transfer);
  CHECK(state.leases().lease_for(*device, Instant::max()).error() == Errc::timed_out);
}
