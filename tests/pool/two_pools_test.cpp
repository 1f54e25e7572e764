// Several pools of one process, and devices that are opened again after a loss.
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
#include "support/device/memory_device.hpp"
#include "support/scripted_pool.hpp"
#include "waiting.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using test::pool_of;
using test::Scripted;
using test::scripted;

TEST_CASE("two pools of one device have contexts, limits and metrics of their own", "[pool]") {
  const Scripted device = scripted("cuda:0");
  ContextPool one = pool_of({device}, {.lanes_per_device = 1, .lane_memory = 1000_B}),
              two = pool_of({device}, {.lanes_per_device = 2, .lane_memory = 500_B});
  Lease a = one.lease().value(), b = two.lease().value();
  CHECK(a.id() == b.id());
  CHECK(one.try_lease().error() == Errc::unavailable);
  CHECK(two.try_lease());
  const Buffer large = a.buffer<std::byte>(900).value();
  CHECK(b.buffer<std::byte>(501).error() == Errc::over_budget);
  const Buffer small = b.buffer<std::byte>(500).value();
  CHECK(one.metrics().bytes == 900_B);
  CHECK(two.metrics().bytes == 500_B);
  CHECK(one.metrics().leases == 1);
  CHECK(two.metrics().leases == 2);
  CHECK(device->silicon()->account()->held() == 1400_B);
}

TEST_CASE("closing one pool of a device leaves the leases and waiters of another as they are", "[pool]") {
  const test::CountingClock clock;
  const Scripted device = scripted("cuda:0");
  std::optional<ContextPool> one = pool_of({device}, {.lanes_per_device = 1});
  ContextPool two = pool_of({device}, {.lanes_per_device = 1, .lease_timeout = 60s, .clock = &clock});
  std::optional<Lease> held = two.lease().value();
  test::Waiting waiter(two, clock);
  CHECK(one->close(1s));
  one.reset();
  CHECK_FALSE(waiter.has_returned());
  held->fill(held->buffer<float>(4).value(), 0);
  CHECK(held->wait());
  held.reset();
  CHECK(waiter.get());
}

TEST_CASE("the loss of a device reaches every pool that has it", "[pool]") {
  const Scripted device = scripted("cuda:0"), spare = scripted("vulkan:0");
  ContextPool one = pool_of({device}), two = pool_of({device, spare});
  CHECK(two.lease()->device().id() == "cuda:0");
  device->lose();
  CHECK(one.lease().error() == Errc::device_lost);
  CHECK(two.lease()->device().id() == "vulkan:0");
}

TEST_CASE("a device that is opened again after a loss is another device", "[pool]") {
  const auto lost = std::make_shared<test::MemoryDevice>("cuda:0", 1_GiB, 21);
  const auto open = [](const std::shared_ptr<test::MemoryDevice>& device) {
    pool::Inventory inventory;
    inventory.adapters.push_back(device->info());
    inventory.devices.push_back(device);
    return pool::Pool::open({.lanes_per_device = 1}, std::move(inventory));
  };
  const auto before = open(lost);
  std::optional<Lease> old = before->lease({}, Instant::min()).value();
  Buffer of_old = old->buffer<std::uint32_t>(100).value();
  lost->is_lost = true;

  const auto again = std::make_shared<test::MemoryDevice>("cuda:0", 1_GiB, 21);
  CHECK(again->ref().silicon == lost->ref().silicon);
  CHECK(again->ref().generation > lost->ref().generation);
  const auto after = open(again);
  CHECK(after->leases().lease_on(*lost, after->clock().now()).error() == Errc::device_lost);
  CHECK(after->leases().lease_for(*lost, Instant::min()).error() == Errc::device_lost);
  CHECK(before->leases().lease_on(*again, before->clock().now()).error() == Errc::invalid_argument);
  CHECK(before->leases().lease_on(*lost, before->clock().now()).error() == Errc::device_lost);
  Lease fresh = after->leases().lease_on(*again, after->clock().now()).value();
  fresh.fill(of_old, 0);
  CHECK(fresh.wait().error() == Errc::invalid_argument);  // memory of the lost device
  old->fill(of_old, 0);
  CHECK(old->wait().error() == Errc::device_lost);

  // Both generations use the memory of one silicon until the buffers of the old one are freed.
  const Buffer of_new = fresh.buffer<std::uint32_t>(50).value();
  CHECK(again->memory().in_use == 600_B);
  CHECK(after->metrics_locked().bytes == 200_B);
  of_old = Buffer();
  CHECK(again->memory().in_use == 200_B);
  old.reset();
  CHECK(before->metrics_locked().active == 0);
}

TEST_CASE("pools open and close on many threads without changing each other's leases", "[pool]") {
  ContextPool lasting = ContextPool::open({.backends = {"cpu"}, .lanes_per_device = 2}).value();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        auto pool = ContextPool::open({.backends = {"cpu", "null"}, .lanes_per_device = 1});
        if (!pool) {
          ++wrong;
          continue;
        }
        auto lease = pool->lease(), other = lasting.lease({.deadline = 60s});
        if (!lease || !other) {
          ++wrong;
          continue;
        }
        const auto buffer = lease->buffer<std::uint32_t>(100);
        std::vector<std::uint32_t> out(100);
        lease->fill(*buffer, 6);
        lease->download(*buffer, out);
        wrong += !lease->wait() || out != std::vector<std::uint32_t>(100, 6);
        wrong += !pool->close(60s) || !other->wait();
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(lasting.metrics().active == 0);
  CHECK(lasting.metrics().leases == 80);
}
