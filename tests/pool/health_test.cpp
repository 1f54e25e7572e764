// Lost devices: they are opened again, checked and replaced, and answer device_lost for ever.
#include <wye/pool/context_pool.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::Reopening;
using test::Scripted;
using test::scripted;

namespace {

/// A pool of one device that can be opened again. Its clock moves only by hand.
struct Mortal {
  explicit Mortal(std::uint32_t lanes = 2)
      : pool(test::pool_of({device}, {.lanes_per_device = lanes, .clock = &clock}, {adapter})) {}
  DeviceState state() const { return pool.silicon().at(0).devices.at(0); }
  /// Completes `count` jobs.
  void complete(int count) const {
    for (int i = 0; i < count; ++i) base::state_of(pool)->note_run(0, [] { return 1.0; });
  }

  ManualClock clock;
  Scripted device = scripted("vulkan:0", AdapterType::discrete, {}, 61);
  std::shared_ptr<Reopening> adapter = std::make_shared<Reopening>(device->info());
  ContextPool pool;
};

/// Copies a number to the device of a lease and back.
int round_trip(Result<Lease> lease, int value) {
  const Buffer buffer = lease->buffer<int>(1).value();
  int returned = -1;
  lease->upload(std::vector<int>{value}, buffer);
  lease->download(buffer, std::span(&returned, 1));
  REQUIRE(lease->wait());
  return returned;
}

}  // namespace

TEST_CASE("a lost device is opened again by the next lease, checked, and has a new handle",
          "[pool][health]") {
  Mortal one;
  const Device before = one.pool.devices().front();
  const Buffer old = before.buffer<int>(1).value();
  { CHECK(round_trip(one.pool.lease(), 1) == 1); }
  CHECK(one.state().health == DeviceHealth::healthy);
  one.device->lose();
  Lease lease = one.pool.lease().value();
  CHECK(one.adapter->calls == 1);
  CHECK(one.pool.devices().front() == lease.device());
  CHECK(round_trip(std::move(lease), 2) == 2);
  CHECK(!(one.pool.devices().front() == before));
  CHECK(one.state().health == DeviceHealth::healthy);
  CHECK(one.state().generation == 2);
  REQUIRE(one.state().last_fault);
  CHECK(one.state().last_fault->sentence() == "Device 'vulkan:0' was lost.");
  CHECK(one.pool.metrics().recoveries == 1);
  for (int i = 0; i < 3; ++i) CHECK(before.buffer<int>(1).error() == Errc::device_lost);
  CHECK(base::state_of(old)->device()->lost());
  CHECK(base::state_of(one.pool)->leases().lease_on(*one.device, one.clock.now()).error() ==
        Errc::device_lost);
}

TEST_CASE("a loss is told to the qualifier of the pool, once, with the device that was lost",
          "[pool][health]") {
  struct Noting final : device::Qualifier {
    Result<void> qualify(const std::shared_ptr<device::DeviceBase>&) override { return {}; }
    void note_loss(const device::DeviceBase& device) noexcept override { lost.push_back(&device); }
    std::vector<const device::DeviceBase*> lost;
  };
  const Scripted device = scripted("vulkan:0");
  const auto noting = std::make_shared<Noting>();
  pool::Inventory inventory;
  inventory.adapters.push_back(device->info());
  inventory.devices.push_back(device);
  inventory.reopened_by.push_back(std::make_shared<Reopening>(device->info()));
  const auto pool = pool::Pool::open({}, std::move(inventory), noting);
  pool->note_loss(0);
  CHECK(noting->lost.empty());
  device->lose();
  pool->note_loss(0);
  pool->note_loss(0);
  CHECK(noting->lost == std::vector<const device::DeviceBase*>{device.get()});
}

TEST_CASE("a lease of a lost device keeps it, and its context gets a lane of the new one", "[pool][health]") {
  Mortal one(1);
  std::optional<Lease> lease = one.pool.lease().value();
  one.device->lose();
  CHECK(one.pool.try_lease().error() ==
        Errc::unavailable);  // the context is leased; the device is opened meanwhile
  CHECK(one.state().generation == 2);
  CHECK(base::state_of(lease->device()) == one.device);
  const auto none = lease->buffer<int>(1);
  CHECK(none.error() == Errc::device_lost);
  lease.reset();
  CHECK(round_trip(one.pool.lease(), 3) == 3);
  CHECK(one.device->lanes_alive() == 0);
}

TEST_CASE("nothing of a lost device stays in its pool", "[pool][health]") {
  Mortal one;
  { Lease a = one.pool.lease().value(), b = one.pool.lease().value(); }
  const std::weak_ptr<test::ScriptedDevice> lost = one.device;
  one.device->lose();
  one.device.reset();
  CHECK(one.pool.lease());
  CHECK(lost.expired());
}

TEST_CASE("a device that cannot be opened waits for a back-off that doubles, and is dead after ten failures",
          "[pool][health]") {
  Mortal one;
  one.adapter->failure = Error(Errc::unavailable, "The driver is resetting.");
  one.device->lose();
  const auto refused = [&](int calls) {
    CHECK(one.pool.lease().error() == Errc::device_lost);
    CHECK(one.adapter->calls == calls);
  };
  refused(1);
  CHECK(one.state().health == DeviceHealth::quarantined);
  CHECK(one.state().last_fault->sentence() == "The driver is resetting.");
  int calls = 1;
  for (Duration wait = 100ms; calls < 10; wait = std::min<Duration>(2 * wait, 30s)) {
    one.clock.advance(wait - 1ns);
    refused(calls);
    one.clock.advance(1ns);
    refused(++calls);
    CHECK(one.state().health == (calls < 10 ? DeviceHealth::quarantined : DeviceHealth::dead));
  }
  one.adapter->failure.reset();
  one.clock.advance(std::chrono::hours(24));
  refused(10);
  CHECK(one.state().generation == 1);
}

TEST_CASE("a device that copies wrongly after it was opened again is not used", "[pool][health]") {
  Mortal one;
  one.adapter->lies = true;
  one.device->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  CHECK(one.state().health == DeviceHealth::quarantined);
  CHECK(one.state().last_fault->sentence() == "Device 'vulkan:0' returned a wrong copy of 1024 bytes.");
  one.adapter->lies = false;
  one.clock.advance(100ms);
  CHECK(round_trip(one.pool.lease(), 4) == 4);
  CHECK(one.adapter->devices.front().use_count() == 1);
}

TEST_CASE("a device that is lost again soon waits longer; jobs that complete end the back-off",
          "[pool][health]") {
  Mortal one;
  one.device->lose();
  REQUIRE(one.pool.lease());
  one.adapter->devices.back()->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  one.clock.advance(100ms);
  REQUIRE(one.pool.lease());
  one.complete(15);
  one.adapter->devices.back()->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  one.clock.advance(100ms);
  CHECK(one.pool.lease().error() == Errc::device_lost);
  one.clock.advance(100ms);
  REQUIRE(one.pool.lease());
  one.complete(16);
  one.adapter->devices.back()->lose();
  REQUIRE(one.pool.lease());
  CHECK(one.state().generation == 5);
}

TEST_CASE("a device that cannot be opened again is dead, and the others of its processor go on",
          "[pool][health]") {
  const Scripted cuda = scripted("cuda:0", AdapterType::discrete, {}, 62),
                 vulkan = scripted("vulkan:0", AdapterType::discrete, {}, 62);
  ContextPool pool = test::pool_of({cuda, vulkan});
  cuda->lose();
  Lease lease = pool.lease().value();
  CHECK(lease.device().id() == "vulkan:0");
  const SiliconInfo silicon = pool.silicon().at(0);
  CHECK(silicon.devices[0].health == DeviceHealth::dead);
  CHECK(silicon.devices[1].health == DeviceHealth::healthy);
  CHECK(pool.lease({.on = "cuda"}).error() == Errc::device_lost);
}

TEST_CASE("a device that comes back as another processor is refused", "[pool][health]") {
  Mortal one;
  one.adapter->described.device_uuid.back() = 63;
  one.device->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  CHECK(one.state().last_fault->sentence() == "Device 'vulkan:0' is on another processor since it was lost.");
}

TEST_CASE("jobs that completed before a loss do not count after it", "[pool][health]") {
  Mortal one;
  one.device->lose();
  REQUIRE(one.pool.lease());
  one.complete(15);
  one.adapter->devices.back()->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  one.clock.advance(100ms);
  REQUIRE(one.pool.lease());
  one.complete(15);  // 30 since the first loss
  one.adapter->devices.back()->lose();
  CHECK(one.pool.lease().error() == Errc::device_lost);
  one.clock.advance(200ms);
  CHECK(one.pool.lease());
}
