// Closing a pool whose contexts are leased, or whose lanes have work in flight.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"
#include "support/thread.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::pool_of;
using test::Scripted;
using test::scripted;

namespace {

/// Leases `count` contexts, and ends the leases with work in flight.
void leave_in_flight(ContextPool& pool, test::ScriptedDevice& device, int count = 1) {
  const Buffer buffer = pool.devices()[0].buffer<float>(4).value();
  device.hold();
  std::vector<Lease> leases;
  for (int i = 0; i < count; ++i) {
    Lease& lease = leases.emplace_back(pool.try_lease().value());
    lease.fill(buffer, 0);
    lease.submit();
  }
}

}  // namespace

TEST_CASE("copies of a pool are closed together, and closing again changes nothing", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0")});
  ContextPool copy = pool;
  { const auto lease = pool.lease(); }
  copy.close();
  copy.close();
  CHECK(pool.lease().error() == Errc::closed);
  CHECK(pool.lease().error().sentence() == "The context pool is closed.");
  CHECK(copy.close(0s));
  CHECK(pool.close(0s));
}

TEST_CASE("a closed pool keeps its devices, its metrics and its list of contexts", "[pool]") {
  ContextPool pool = ContextPool::open({.backends = {"cpu"}}).value();
  const Lease lease = pool.lease().value();
  const Buffer buffer = lease.device().buffer<float>(10).value();
  pool.close();
  CHECK(pool.devices().size() == 1);
  CHECK(pool.adapters().size() == 1);
  CHECK(pool.metrics().leases == 1);
  CHECK(pool.metrics().active == 1);
  CHECK(pool.contexts().at(0).active);
  CHECK(pool.devices()[0].buffer<float>(10));  // devices stay open
}

TEST_CASE("closing waits for the work of ended leases, and destroys their lanes", "[pool]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 3});
  leave_in_flight(pool, *device, 3);
  CHECK(device->lanes_alive() == 3);
  bool is_closed = false;
  test::Thread closes([&] { is_closed = pool.close(60s).has_value(); });
  closes.await_parked();
  device->release();
  closes.join();
  CHECK(is_closed);
  CHECK(device->lanes_alive() == 0);
  CHECK(device->lanes_cut_off() == 0);
}

TEST_CASE("closing does not wait for leases that have not ended", "[pool]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = pool_of({device});
  Lease lease = pool.lease().value();
  const Buffer buffer = lease.buffer<float>(4).value();
  device->hold();
  lease.fill(buffer, 0);
  lease.submit();
  CHECK(pool.close(Deadline::never()));
  CHECK(lease.wait(1ms).error() == Errc::timed_out);
  device->release();
  CHECK(lease.wait());
}

TEST_CASE("closing with a deadline names every context with work in flight, and keeps it", "[pool]") {
  const Scripted device = scripted("cuda:0");
  std::optional<ContextPool> pool = pool_of({device}, {.lanes_per_device = 2});
  leave_in_flight(*pool, *device, 2);
  const auto closed = pool->close(5ms);
  REQUIRE_FALSE(closed);
  CHECK(closed.error() == Errc::timed_out);
  const std::string& text = closed.error().sentence();
  CHECK(text.find("context 'cuda:0#0'") != std::string::npos);
  CHECK(text.find("context 'cuda:0#1'") != std::string::npos);
  CHECK(pool->close(0s));  // no other work is in flight
  pool.reset();
  CHECK(device->lanes_alive() == 2);  // the device may still use them
  CHECK(device->buffers_alive() == 1);
  device->release();
  CHECK(device->lanes_cut_off() == 0);
}

TEST_CASE("after work was abandoned the destructor of the pool does not wait for more", "[pool]") {
  const Scripted device = scripted("cuda:0");
  std::optional<ContextPool> pool = pool_of({device}, {.lanes_per_device = 2, .close_timeout = 1h});
  std::optional<Lease> late = pool->lease().value();
  leave_in_flight(*pool, *device);
  CHECK_FALSE(pool->close(1ms));
  late->fill(late->buffer<float>(4).value(), 0);
  late->submit();
  pool.reset();
  late.reset();  // the last user of the pool; an hour is over the time limit of every test
  CHECK(device->lanes_alive() == 2);
}

TEST_CASE("the destructor of a pool waits for work in flight until close_timeout", "[pool]") {
  SECTION("and destroys its lane if it completes") {
    const Scripted device = scripted("cuda:0");
    std::optional<ContextPool> pool = pool_of({device}, {.close_timeout = 60s});
    leave_in_flight(*pool, *device);
    test::Thread closes([&] { pool.reset(); });
    closes.await_parked();
    device->release();
    closes.join();
    CHECK(device->lanes_alive() == 0);
    CHECK(device->lanes_cut_off() == 0);
    CHECK(device->buffers_alive() == 0);
  }
  SECTION("and otherwise abandons it") {
    const Scripted device = scripted("cuda:0");
    std::optional<ContextPool> pool = pool_of({device}, {.close_timeout = 5ms});
    leave_in_flight(*pool, *device);
    pool.reset();
    CHECK(device->lanes_alive() == 1);
    CHECK(device->lanes_cut_off() == 0);
  }
}

TEST_CASE("a lost device has no work in flight to wait for", "[pool]") {
  const Scripted device = scripted("cuda:0");
  std::optional<ContextPool> pool = pool_of({device});
  {
    Lease lease = pool->lease().value();
    const Buffer buffer = lease.buffer<float>(4).value();
    device->lose();
    lease.fill(buffer, 0);
    CHECK(lease.wait().error() == Errc::device_lost);
  }
  CHECK(pool->close(Deadline::never()));
  pool.reset();
  CHECK(device->lanes_alive() == 0);
}

TEST_CASE("while a pool closes, each lease is granted or refused as closed", "[pool]") {
  for (int round = 0; round < 20; ++round) {
    ContextPool pool =
        pool_of({scripted("cuda:0"), scripted("vulkan:0")}, {.lanes_per_device = 1, .lease_timeout = 60s});
    std::atomic<int> others{0}, closed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 6; ++t)
      threads.emplace_back([&] {
        for (;;) {
          const auto lease = pool.lease();
          if (lease) continue;
          ++(lease.error() == Errc::closed ? closed : others);
          return;
        }
      });
    while (pool.metrics().leases < 50) std::this_thread::yield();
    CHECK(pool.close(60s));
    for (auto& thread : threads) thread.join();
    CHECK(others == 0);
    CHECK(closed == 6);
    CHECK(pool.metrics().active == 0);
  }
}

TEST_CASE("threads that close one pool at the same time all return", "[pool]") {
  const Scripted device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 4});
  leave_in_flight(pool, *device, 4);
  std::atomic<int> closed{0};
  std::deque<test::Thread> threads;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { closed += pool.close(60s).has_value(); });
  for (const test::Thread& thread : threads) thread.await_parked();
  device->release();
  for (test::Thread& thread : threads) thread.join();
  CHECK(closed == 4);
  CHECK(device->lanes_alive() == 0);
  CHECK(device->lanes_cut_off() == 0);
}
