// Leases in a process that counts its allocations, and fails them.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "all_devices.hpp"
#include "base/internals.hpp"
#include "device/timeline.hpp"
#include "pool/discovery.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"
#include "support/failing_new.hpp"
#include "support/scripted_machine.hpp"
#include "support/scripted_pool.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace wye::literals;

namespace {

/// The allocations of this thread in `f`.
template <class F>
long count(F f) {
  const long before = test::allocations;
  f();
  return test::allocations - before;
}

}  // namespace

TEST_CASE("a lease of an idle context allocates nothing, nor does its end", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu", "null"}, .lanes_per_device = 2}).value();
  { const auto a = pool.lease({.on = "cpu"}), b = pool.lease({.on = "cpu"}); }  // makes the lanes
  bool is_leased = true;
  const auto lease = [&](const LeaseRequest& request) {
    for (int i = 0; i < 10; ++i) is_leased &= pool.lease(request).has_value();
    for (int i = 0; i < 10; ++i) is_leased &= pool.try_lease(request).has_value();
  };
  CHECK(count([&] { lease({}); }) == 0);
  CHECK(count([&] { lease({.on = "cpu"}); }) == 0);
  CHECK(count([&] { lease({.on = "cpu:0", .needs = {Feature::float64}}); }) == 0);
  CHECK(count([&] {
          Lease a = std::move(pool.lease()).value();
          Lease b = std::move(pool.lease()).value();
          a = std::move(b);
        }) == 0);
  CHECK(is_leased);
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("whichever allocation of a lease fails, it is an error, and the pool is as before", "[pool]") {
  const auto device = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto state =
      pool::Pool::open({.lanes_per_device = 1, .lane_memory = 1_MiB, .lease_timeout = Duration::zero()},
                       {.adapters = {device->info()}, .devices = {device}});
  enum class Life { cold, warm, busy, unknown };
  for (const Life life : {Life::cold, Life::warm, Life::busy, Life::unknown}) {
    INFO("life " << static_cast<int>(life));
    int failures = 0;
    for (long n = 0; n < 200; ++n) {
      std::optional<Lease> held;
      if (life == Life::busy) held = state->lease({}, Instant::min()).value();
      if (life == Life::cold)  // a lane that failed is replaced
        base::state_of(state->lease({}, Instant::min()).value())
            ->lane()
            .fail(Error(Errc::internal, "no more"));
      std::optional<Result<Lease>> lease;
      std::optional<Result<Buffer>> buffer;
      test::fail_allocations(n, test::Failing::all_of_thread);  // the CPU's team continues
      lease.emplace(state->lease({.on = life == Life::unknown ? "nowhere" : ""}, Instant::min()));
      if (*lease) buffer.emplace((**lease).buffer<float>(1000));
      test::fail_no_allocations();
      const bool failed = test::failed_allocations() > 0;
      INFO("allocation " << n);
      if (life == Life::busy && !failed) CHECK(lease->error() == Errc::unavailable);
      if (life == Life::unknown && !failed) CHECK(lease->error() == Errc::not_found);
      if (!*lease && failed)
        CHECK((lease->error() == Errc::out_of_memory || lease->error() == Errc::unavailable ||
               lease->error() == Errc::not_found));
      if (buffer && !*buffer) CHECK(buffer->error() == Errc::out_of_memory);
      const Bytes charged = buffer && *buffer ? Bytes{4000} : Bytes{};
      const auto contexts = state->contexts_locked();
      CHECK((contexts.empty() ? Bytes{} : contexts.at(0).bytes) == charged);
      CHECK(state->metrics_locked().bytes == charged);
      CHECK(device->memory().in_use == charged);
      buffer.reset();
      lease.reset();
      held.reset();
      CHECK(device->memory().in_use == 0_B);
      CHECK(state->metrics_locked().active == 0);
      CHECK(state->lease({}, Instant::min()));
      if (!failed) break;
      ++failures;
    }
    CHECK(failures > 0);
    CHECK(failures < 199);
  }
}

TEST_CASE("a lease of an idle context allocates nothing on any device", "[pool]") {
  ContextPool pool = test::all_devices();
  for (const Device& device : pool.devices()) {
    CAPTURE(device.id());
    const LeaseRequest request{.on = device.id()};
    const Buffer buffer = device.buffer<float>(1000).value();
    {  // creates both lanes, and uses them
      auto a = pool.lease(request).value(), b = pool.lease(request).value();
      for (Lease* lease : {&a, &b}) {
        lease->fill(buffer, 0);
        CHECK(lease->wait());
      }
    }
    bool is_leased = true;
    CHECK(count([&] {
            for (int i = 0; i < 10; ++i) is_leased &= pool.lease(request).has_value();
            for (int i = 0; i < 10; ++i) is_leased &= pool.try_lease(request).has_value();
          }) == 0);
    CHECK(is_leased);
  }
}

TEST_CASE("a lane returns whether it is idle without an allocation on any device", "[pool]") {
  ContextPool pool = test::all_devices();
  for (const Device& device : pool.devices()) {
    CAPTURE(device.id());
    const Buffer buffer = device.buffer<float>(1000).value();
    const auto gate = base::state_of(device)->create_timeline().value();
    Lease lease = pool.lease({.on = device.id()}).value();
    device::Lane& lane = base::state_of(lease)->lane();
    lane.wait_for({gate, 1});
    lease.fill(buffer, 0);
    lane.submit();
    bool is_idle = false;
    CHECK(count([&] {
            for (int i = 0; i < 10; ++i) is_idle |= lane.idle();
          }) == 0);
    CHECK_FALSE(is_idle);
    CHECK(gate->signal(1));
    CHECK(lane.idle(Instant::max()));
    CHECK(lease.wait());
  }
}

TEST_CASE("the metrics of a pool are read without an allocation", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu", "null"}}).value();
  const auto lease = pool.lease();
  CHECK(count([&] { CHECK(pool.metrics().active == 1); }) <= count([&] { CHECK(true); }));
}

namespace {

/// Calls `life(n)` with allocation number `n` of this thread failing, and then without memory from
/// that allocation on. `life` returns whether an allocation failed.
template <class Life>
void at_every_allocation(Life life) {
  for (const test::Failing failing : {test::Failing::one, test::Failing::all_of_thread}) {
    long n = 0;
    for (; n < 5000; ++n) {
      INFO("allocation " << n << (failing == test::Failing::one ? "" : " and all that follow"));
      if (!life(n, failing)) break;
    }
    CHECK(n > 0);
    CHECK(n < 5000);
  }
}

/// Ends the failures. Returns whether there was one.
bool one_failed() {
  test::fail_no_allocations();
  return test::failed_allocations() > 0;
}

}  // namespace

TEST_CASE("whichever allocation of opening a pool fails, it is an error, and the next pool opens", "[pool]") {
  long n = 0;
  for (bool failed = true; failed; ++n) {
    INFO("allocation " << n);
    PoolOptions options{.backends = {"null", "cpu"}, .lanes_per_device = 2};
    test::fail_allocations(n, test::Failing::one);
    std::optional<Result<ContextPool>> pool = ContextPool::open(std::move(options));
    failed = one_failed();
    // A device that cannot be opened is left out, with its reason.
    if (!*pool) CHECK((pool->error() == Errc::out_of_memory || pool->error() == Errc::unavailable));
    if (!failed) CHECK((*pool)->devices().size() == 2);
    if (*pool) CHECK((*pool)->lease());
    REQUIRE(n < 5000);
  }
  CHECK(n > 1);
  CHECK(ContextPool::open({.backends = {"null", "cpu"}})->devices().size() == 2);
}

TEST_CASE("whichever allocation of a lease's commands fails, the lease fails with out_of_memory", "[pool]") {
  const std::string on = GENERATE("cpu", "null");
  CAPTURE(on);
  ContextPool pool = ContextPool::open({.backends = {on}, .lanes_per_device = 1}).value();
  const Buffer from = pool.devices()[0].buffer<std::uint32_t>(100).value(),
               to = pool.devices()[0].buffer<std::uint32_t>(100).value();
  const std::vector<std::uint32_t> values(100, 3);
  at_every_allocation([&](long n, test::Failing failing) {
    {
      Sequence sequence(pool.devices()[0]);
      sequence.fill(to, 0);
      std::vector<std::uint32_t> out(100);
      Lease lease = pool.lease().value();
      base::state_of(lease)->lane().fail(Error(Errc::internal, "The next lease has a new lane."));
      { const Lease ends = std::move(lease); }
      lease = pool.lease().value();
      test::fail_allocations(n, failing);
      lease.upload(values, from);
      lease.submit(sequence);
      lease.copy(from, to, from.bytes());
      const SyncPoint point = lease.point();
      lease.wait_for(point);
      lease.download(to, out);
      Result<void> done = lease.wait();
      const bool failed = one_failed();
      if (done && on == "cpu") CHECK(out == values);
      if (!done) CHECK(done.error() == Errc::out_of_memory);
      if (!done) CHECK(lease.wait().error() == Errc::out_of_memory);  // it stays
      CHECK((done || failed));
      if (!failed) return false;
    }
    CHECK(pool.lease()->wait());
    CHECK(pool.metrics().active == 0);
    return true;
  });
}

TEST_CASE("a lease with work in flight ends without memory, and its lane completes its work", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 1}).value();
  const Device device = pool.devices()[0];
  const Buffer buffer = device.buffer<std::uint32_t>(4).value();
  long n = 0;
  for (bool failed = true; failed; ++n) {
    INFO("allocation " << n);
    const auto gate = base::state_of(device)->create_timeline().value();
    std::optional<Lease> lease = pool.lease().value();
    lease->wait_for(SyncPoint(gate, 1));
    lease->fill(buffer, 7);
    const SyncPoint filled = lease->point();
    test::Thread ends([&] {  // a pool without memory to keep the lane waits for the work
      test::fail_allocations(n, test::Failing::all_of_thread);
      lease.reset();
      failed = one_failed();
    });
    ends.await_parked();
    (void)gate->signal(1);
    ends.join();
    CHECK(filled.wait(std::chrono::minutes(1)));
    CHECK(pool.lease()->wait());
    CHECK(pool.metrics().active == 0);
    REQUIRE(n < 100);
  }
  CHECK(n > 1);
  CHECK(pool.close(Deadline::never()));
}

// Not with a leak checker: without memory nothing remembers the abandoned lane.
TEST_CASE("closing names the abandoned work if there is memory, and always reports it",
          "[pool][no_sanitizer]") {
  long n = 0;
  for (bool failed = true; failed; ++n) {
    INFO("allocation " << n);
    const auto device = test::scripted("cuda:0");
    ContextPool pool = test::pool_of({device}, {.lanes_per_device = 1});
    device->hold();
    {
      Lease lease = pool.lease().value();
      lease.fill(lease.buffer<float>(4).value(), 0);
      lease.submit();
    }
    test::fail_allocations(n, test::Failing::all_of_thread);
    const auto closed = pool.close(Deadline(Duration::zero()));
    failed = one_failed();
    CHECK(closed.error() == Errc::timed_out);
    if (!failed) CHECK(closed.error().sentence().find("context 'cuda:0#0'") != std::string::npos);
    CHECK(device->lanes_cut_off() == 0);
    device->release();
    REQUIRE(n < 100);
  }
  CHECK(n > 1);
}

TEST_CASE("a rescan without memory adds no device, and a later one adds all", "[pool][memory][rescan]") {
  int failures = 0;
  for (long allocations = 0;; ++allocations) {
    test::ScriptedMachine machine;
    machine.plug("vulkan:0", 171);
    ContextPool pool =
        machine.open({.lanes_per_device = 2, .silicon_memory = 1_MiB, .tag_memory = {{"small", 48_KiB}}});
    machine.plug("vulkan:1", 172);
    machine.plug("cuda:0", 172);
    test::fail_allocations(allocations, test::Failing::all_of_thread);
    auto found = pool.rescan();
    test::fail_no_allocations();
    if (found) {
      CHECK(found->size() == 2);
      break;
    }
    ++failures;
    REQUIRE(found.error() == Errc::out_of_memory);
    REQUIRE(pool.devices().size() == 1);
    REQUIRE(pool.adapters().size() == 1);
    REQUIRE(pool.silicon().size() == 1);
    REQUIRE(pool.rescan().value().size() == 2);
    REQUIRE(pool.lease({.on = "vulkan:1"}));
    REQUIRE(pool.silicon().at(1).devices.size() == 2);
  }
  CHECK(failures > 50);
}
