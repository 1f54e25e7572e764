// What a pool's contexts hold of the memory of their devices.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "pool/discovery.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

using Devices = std::vector<std::shared_ptr<device::DeviceBase>>;

std::shared_ptr<pool::Pool> open(PoolOptions options, Devices devices) {
  pool::Inventory inventory;
  for (const auto& device : devices) inventory.adapters.push_back(device->info());
  inventory.devices = std::move(devices);
  return pool::Pool::open(std::move(options), std::move(inventory));
}

}  // namespace

TEST_CASE("a pool counts what its contexts hold, and a silicon what all pools hold", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_GiB, 3);
  const auto same_card = std::make_shared<test::MemoryDevice>("vulkan:0", 1_GiB, 3);
  const auto one = open({.lanes_per_device = 1}, {card, same_card});
  const auto two = open({.lanes_per_device = 1}, {card});
  CHECK(one->account_on(*card) == one->account_on(*same_card));
  CHECK(one->account_on(*card) != two->account_on(*card));
  Lease a = one->lease({.on = "cuda"}, Instant::min()).value();
  Lease b = one->lease({.on = "vulkan"}, Instant::min()).value();
  Lease c = two->lease({}, Instant::min()).value();
  const Buffer in_a = a.buffer<std::byte>(100).value(), in_b = b.buffer<std::byte>(20).value(),
               in_c = c.buffer<std::byte>(3).value(), in_none = Device(card).buffer<std::byte>(4000).value();
  CHECK(one->metrics_locked().bytes == 120_B);
  CHECK(two->metrics_locked().bytes == 3_B);
  for (const ContextInfo& context : one->contexts_locked())
    CHECK(context.bytes == (context.backend == "cuda" ? 100_B : 20_B));
  CHECK(Device(card).memory().in_use == 4123_B);
  CHECK(Device(same_card).memory().in_use == 4123_B);
}

TEST_CASE("a context that is over its limit does not make others give way", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 1, .lane_memory = 1000_B}, {card});
  const auto spare = std::make_shared<test::ScriptedReclaimable>();
  card->add_reclaimable(spare);
  Lease lease = pool->lease({}, Instant::min()).value();
  const auto over = lease.buffer<std::byte>(1001);
  CHECK(over.error() == Errc::over_budget);
  CHECK(over.error().sentence() ==
        "Allocation (1001 bytes) exceeds the rest of the budget of context 'scripted:0#0' (0 bytes held of "
        "1000 bytes).");
  CHECK(spare->calls == 0);
  card->refuse_buffers = 1;
  spare->gives = 500_B;
  CHECK(lease.buffer<std::byte>(500));
  CHECK(spare->calls == 1);
}

TEST_CASE("a lost device is not leased while another can be, and is an error otherwise", "[pool]") {
  const auto a = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto b = std::make_shared<test::MemoryDevice>("scripted:1");
  const auto pool = open({.lanes_per_device = 1}, {a, b});
  a->is_lost = true;
  {
    Lease lease = pool->lease({}, Instant::min()).value();
    CHECK(lease.id() == "scripted:1#0");
    CHECK(pool->lease({}, Instant::min()).error() == Errc::unavailable);
  }
  CHECK(pool->lease_on(a->ref()).error() == Errc::device_lost);
  CHECK(pool->lease_on(b->ref()));
  b->is_lost = true;
  CHECK(pool->lease({}, Instant::min()).error() == Errc::device_lost);
}

TEST_CASE("a device that is not of the pool is refused", "[pool]") {
  const auto own = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto other = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({}, {own});
  CHECK(pool->lease_on(other->ref()).error() == Errc::invalid_argument);
  CHECK(pool->lease_for(*other, Instant::min()).error() == Errc::invalid_argument);
  CHECK(pool->account_on(*other) == nullptr);
}

TEST_CASE("a device that makes no lane leaves the lease to the next one", "[pool]") {
  const auto a = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto b = std::make_shared<test::MemoryDevice>("scripted:1");
  const auto pool = open({.lanes_per_device = 1}, {a, b});
  a->refuse_lanes = 1;
  CHECK(pool->lease({}, Instant::min()).value().id() == "scripted:1#0");
  CHECK(pool->lease({}, Instant::min()).value().id() == "scripted:0#0");
  a->refuse_lanes = b->refuse_lanes = 5;
  const auto fresh = open({.lanes_per_device = 1}, {a, b});
  CHECK(fresh->lease({}, Instant::min()).error() == Errc::out_of_memory);
  CHECK(fresh->metrics_locked().active == 0);
}

TEST_CASE("eight threads lease and allocate while devices refuse; bytes and leases balance", "[pool]") {
  const auto a = std::make_shared<test::MemoryDevice>("scripted:0", 1_MiB, 5);
  const auto b = std::make_shared<test::MemoryDevice>("scripted:1", 1_MiB, 5);
  const auto pool = open({.lanes_per_device = 2, .lane_memory = 4000_B, .lease_timeout = 60s}, {a, b});
  std::atomic<int> granted{0}, over_budget{0}, no_memory{0}, others{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 300; ++i) {
        auto lease = pool->lease({.on = t % 3 == 0 ? "scripted:1" : ""}, Instant::max());
        if (!lease) {
          ++others;
          continue;
        }
        if (random() % 8 == 0) ++(random() % 2 == 0 ? a : b)->refuse_buffers;
        std::vector<Buffer> buffers;
        for (int n = 0; n < 4; ++n) {
          auto buffer = lease->buffer<std::byte>(random() % 1800);
          if (buffer) {
            ++granted;
            buffers.push_back(*std::move(buffer));
          } else {
            ++(buffer.error() == Errc::over_budget     ? over_budget
               : buffer.error() == Errc::out_of_memory ? no_memory
                                                       : others);
          }
        }
      }
    });
  for (auto& thread : threads) thread.join();
  CHECK(granted > 0);
  CHECK(over_budget > 0);
  CHECK(no_memory > 0);
  CHECK(others == 0);
  const PoolMetrics metrics = pool->metrics_locked();
  CHECK(metrics.active == 0);
  CHECK(metrics.leases == 2400);
  CHECK(metrics.bytes == 0_B);
  CHECK(a->silicon()->account()->held() == 0_B);
  for (const ContextInfo& context : pool->contexts_locked()) CHECK(context.bytes == 0_B);
}
