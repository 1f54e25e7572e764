// Devices that appear after the pool was opened, and lost ones that come back.
#include <wye/pool/context_pool.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/scripted_machine.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::ScriptedMachine;

namespace {

/// Returns "cuda:0 vulkan:0 (its reason)".
std::string text_of(const std::vector<AdapterInfo>& adapters) {
  std::string text;
  for (const AdapterInfo& info : adapters) {
    text += (text.empty() ? "" : " ") + info.id;
    if (!info.usable) text += " (" + info.reason + ")";
  }
  return text;
}

std::string ids_of(const ContextPool& pool) {
  std::string text;
  for (const Device& device : pool.devices()) text += (text.empty() ? "" : " ") + device.id();
  return text;
}

}  // namespace

TEST_CASE("a device that appears later is found, leased and listed", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("vulkan:0", 81);
  ContextPool pool = machine.open({.lanes_per_device = 2, .contexts_ahead = 1});
  const std::vector<AdapterInfo>& before = pool.adapters();
  const auto added = machine.plug("vulkan:1", 82);
  base::Journal& journal = base::state_of(pool)->journal();
  std::vector<std::string> opened;
  auto events = journal.listen<base::DeviceChanged>([&](const base::DeviceChanged& event) {
    if (event.change == base::DeviceChanged::Change::opened) opened.emplace_back(event.device);
  });
  const auto found = pool.rescan();
  CHECK(journal.flush());
  CHECK(opened == std::vector<std::string>{"vulkan:1"});
  REQUIRE(found);
  CHECK(text_of(*found) == "vulkan:1");
  CHECK(ids_of(pool) == "vulkan:0 vulkan:1");
  CHECK(text_of(pool.adapters()) == "vulkan:0 vulkan:1");
  CHECK(text_of(before) == "vulkan:0");
  REQUIRE(pool.silicon().size() == 2);
  CHECK(pool.silicon()[1].devices[0].id == "vulkan:1");
  CHECK(added->devices.back()->lanes_alive() == 1);
  const Lease first = pool.lease().value(), second = pool.lease().value();
  CHECK(first.device().id() == "vulkan:0");
  CHECK(second.id() == "vulkan:1#0");
  Lease named = pool.lease({.on = "vulkan:1"}).value();
  CHECK(named.id() == "vulkan:1#1");
  CHECK(pool.try_lease({.on = "vulkan:1"}).error() == Errc::unavailable);
  const auto on_added = base::state_of(pool)->accounts().of(*base::state_of(named.device()));
  REQUIRE(named.buffer<int>(100));
  CHECK(on_added->limit() == silicon::MemoryAccount::no_limit);
}

TEST_CASE("a rescan that finds nothing new changes nothing", "[pool][rescan]") {
  ScriptedMachine machine;
  const auto adapter = machine.plug("vulkan:0", 83);
  ContextPool pool = machine.open();
  const std::vector<AdapterInfo>& before = pool.adapters();
  for (int i = 0; i < 3; ++i) {
    const auto found = pool.rescan();
    REQUIRE(found);
    CHECK(found->empty());
  }
  CHECK(&pool.adapters() == &before);
  CHECK(adapter->calls == 1);
  CHECK(machine.discoveries == 3);
  CHECK(ids_of(pool) == "vulkan:0");
}

TEST_CASE("a pool of devices that were open already finds no others", "[pool][rescan]") {
  ContextPool pool = test::pool_of({test::scripted("vulkan:0")});
  CHECK(pool.rescan().value().empty());
}

TEST_CASE("a device that could not be opened is tried again, and its reason is updated", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("cpu:0", 84, AdapterType::cpu);
  const auto broken = machine.plug("cuda:0", 85);
  broken->failure = Error(Errc::unavailable, "It is off.");
  ContextPool pool = machine.open();
  CHECK(text_of(pool.adapters()) == "cpu:0 cuda:0 (It is off.)");
  broken->failure = Error(Errc::unavailable, "It starts.");
  CHECK(pool.rescan().value().empty());
  CHECK(text_of(pool.adapters()) == "cpu:0 cuda:0 (It starts.)");
  CHECK(ids_of(pool) == "cpu:0");
  broken->failure.reset();
  CHECK(text_of(pool.rescan().value()) == "cuda:0");
  CHECK(text_of(pool.adapters()) == "cpu:0 cuda:0");
  CHECK(pool.lease().value().device().id() == "cuda:0");  // a GPU comes before the CPU
}

TEST_CASE("an adapter that is gone and was never usable is not listed any more", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("vulkan:0", 86);
  const auto broken = machine.plug("cuda:0", 87);
  broken->failure = Error(Errc::unavailable, "It is off.");
  ContextPool pool = machine.open();
  machine.unplug(broken);
  CHECK(pool.rescan().value().empty());
  CHECK(text_of(pool.adapters()) == "vulkan:0");
}

TEST_CASE("a device is recognized by its UUID under another id, and a new one gets a free id",
          "[pool][rescan]") {
  ScriptedMachine machine;
  const auto first = machine.plug("cuda:0", 88);
  ContextPool pool = machine.open();
  machine.unplug(first);
  const auto added = machine.plug("cuda:0", 89);
  const auto same = machine.plug("cuda:1", 88);
  CHECK(text_of(pool.rescan().value()) == "cuda:1");
  CHECK(text_of(pool.adapters()) == "cuda:0 cuda:1");
  CHECK(same->calls == 0);
  CHECK(added->calls == 1);
  CHECK(pool.devices()[1].info().device_uuid.back() == 89);
  CHECK(pool.rescan().value().empty());
  // Opened again after a loss, it keeps the id.
  added->devices.back()->lose();
  CHECK(pool.lease({.on = "cuda:1"}).value().device().id() == "cuda:1");
  CHECK(added->calls == 2);
}

TEST_CASE("a quarantined device is opened again at once, and a dead one if its adapter is found",
          "[pool][rescan]") {
  ManualClock clock;
  ScriptedMachine machine;
  const auto adapter = machine.plug("vulkan:0", 90);
  ContextPool pool = machine.open({.clock = &clock});
  const auto health = [&] { return pool.silicon().at(0).devices.at(0).health; };
  adapter->failure = Error(Errc::unavailable, "The driver is resetting.");
  adapter->devices.back()->lose();
  CHECK(pool.rescan().value().empty());
  CHECK(health() == DeviceHealth::quarantined);
  adapter->failure.reset();
  CHECK(text_of(pool.rescan().value()) == "vulkan:0");
  CHECK(health() == DeviceHealth::healthy);

  adapter->failure = Error(Errc::unavailable, "The driver is resetting.");
  adapter->devices.back()->lose();
  while (health() != DeviceHealth::dead) {
    CHECK(pool.lease().error() == Errc::device_lost);
    clock.advance(30s);
  }
  adapter->failure.reset();
  machine.unplug(adapter);
  CHECK(pool.rescan().value().empty());
  CHECK(health() == DeviceHealth::dead);
  const auto replugged = machine.plug("vulkan:0", 90);
  CHECK(text_of(pool.rescan().value()) == "vulkan:0");
  CHECK(health() == DeviceHealth::healthy);
  CHECK(replugged->calls == 1);
  CHECK(ids_of(pool) == "vulkan:0");
  CHECK(pool.lease());
}

TEST_CASE("a pool has at most 16 devices more than it opened", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("cuda:0", 100);
  ContextPool pool = machine.open();
  for (std::uint8_t i = 1; i <= 17; ++i)
    machine.plug("cuda:" + std::to_string(i), static_cast<std::uint8_t>(100 + i));
  const auto full = pool.rescan();
  REQUIRE_FALSE(full);
  CHECK(full.error() == Errc::over_budget);
  CHECK(full.error().sentence() == "Device 'cuda:17' exceeds the number of devices of this pool (17).");
  CHECK(pool.devices().size() == 17);
  REQUIRE(pool.adapters().size() == 18);
  CHECK(pool.adapters().back().reason == full.error().sentence());
  CHECK(pool.lease({.on = "cuda:16"}));
  CHECK(pool.rescan().error() == Errc::over_budget);
}

TEST_CASE("a request that waits is served by a device that appears", "[pool][rescan]") {
  test::CountingClock clock;
  ScriptedMachine machine;
  machine.plug("vulkan:0", 120);
  ContextPool pool = machine.open({.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  const Lease held = pool.lease().value();
  test::Waiting waiting(pool, clock);
  machine.plug("vulkan:1", 121);
  CHECK(text_of(pool.rescan().value()) == "vulkan:1");
  CHECK(waiting.get().value().device().id() == "vulkan:1");
}

TEST_CASE("a closed pool finds no device", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("vulkan:0", 122);
  ContextPool pool = machine.open();
  machine.plug("vulkan:1", 123);
  pool.close();
  CHECK(pool.rescan().error() == Errc::closed);
  CHECK(ids_of(pool) == "vulkan:0");
  CHECK(machine.discoveries == 0);
}

TEST_CASE("a pool of real devices finds none twice", "[pool][rescan]") {
  ContextPool pool = ContextPool::open({.backends = {"vulkan", "cpu"}}).value();
  const std::string before = text_of(pool.adapters());
  const auto found = pool.rescan();
  REQUIRE(found);
  CHECK(found->empty());
  CHECK(text_of(pool.adapters()) == before);
}

TEST_CASE("threads lease while devices appear, and calls of rescan exclude each other", "[pool][rescan]") {
  ScriptedMachine machine;
  machine.plug("vulkan:0", 130);
  ContextPool pool = machine.open({.lanes_per_device = 1, .lease_timeout = 60s});
  std::atomic<bool> ends{false};
  std::atomic<int> leases{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!ends) {
        if (auto lease = pool.lease(); lease && lease->buffer<int>(10)) ++leases;
        for (const AdapterInfo& info : pool.adapters())
          if (!info.usable) ends = true;
        (void)pool.silicon();
        (void)pool.contexts();
        (void)pool.metrics();
        (void)pool.trim();
      }
    });
  std::atomic<std::size_t> added{0};
  for (int i = 1; i <= 8; ++i) {
    machine.plug("vulkan:" + std::to_string(i), static_cast<std::uint8_t>(130 + i));
    std::vector<std::thread> scans;
    for (int s = 0; s < 2; ++s) scans.emplace_back([&] { added += pool.rescan().value().size(); });
    for (std::thread& scan : scans) scan.join();
  }
  while (leases < 100 && !ends) std::this_thread::yield();
  CHECK_FALSE(ends);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(added == 8);
  CHECK(pool.devices().size() == 9);
}
