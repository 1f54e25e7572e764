// What a pool's contexts hold of the memory of their devices.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/internals.hpp"
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
  CHECK(one->accounts().of(*card) == one->accounts().of(*same_card));
  CHECK(one->accounts().of(*card) != two->accounts().of(*card));
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
  CHECK(pool->leases().lease_on(*a, pool->clock().now()).error() == Errc::device_lost);
  CHECK(pool->leases().lease_on(*b, pool->clock().now()));
  b->is_lost = true;
  CHECK(pool->lease({}, Instant::min()).error() == Errc::device_lost);
}

TEST_CASE("a device that is not of the pool is refused", "[pool]") {
  const auto own = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto other = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({}, {own});
  CHECK(pool->leases().lease_on(*other, pool->clock().now()).error() == Errc::invalid_argument);
  CHECK(pool->leases().lease_for(*other, Instant::min()).error() == Errc::invalid_argument);
  CHECK(pool->accounts().of(*other) == nullptr);
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

TEST_CASE("an allocation of a context is counted on every level above it", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_GiB, 31);
  const auto same_card = std::make_shared<test::MemoryDevice>("vulkan:0", 1_GiB, 31);
  const auto pool = open({.lanes_per_device = 2}, {card, same_card});
  Lease a = pool->lease({.on = "cuda"}, Instant::min()).value(),
        b = pool->lease({.on = "cuda"}, Instant::min()).value(),
        c = pool->lease({.on = "vulkan"}, Instant::min()).value();
  const auto account_of = [](const Lease& lease) { return base::state_of(lease)->context->account; };
  const auto runtime = pool->accounts().of(*card), silicon = card->silicon()->account();
  for (const Lease* lease : {&a, &b, &c}) {
    CHECK(account_of(*lease)->level() == silicon::AccountLevel::context);
    CHECK(account_of(*lease)->parent() == runtime);
  }
  CHECK(runtime->level() == silicon::AccountLevel::runtime);
  CHECK(runtime->parent() == silicon);
  const auto tag =
      std::make_shared<silicon::MemoryAccount>("weights", 1_MiB, silicon::AccountLevel::tag, account_of(a));
  std::vector<Buffer> buffers;
  buffers.push_back(a.buffer<std::byte>(1).value());
  buffers.push_back(b.buffer<std::byte>(20).value());
  buffers.push_back(c.buffer<std::byte>(300).value());
  buffers.push_back(Device(card).buffer<std::byte>(4000).value());
  auto tagged = card->create_buffer({.bytes = 50'000_B, .account = tag}).value();
  const auto held = [&] {
    return std::vector<std::uint64_t>{tag->held().count,           account_of(a)->held().count,
                                      account_of(b)->held().count, account_of(c)->held().count,
                                      runtime->held().count,       silicon->held().count};
  };
  CHECK(held() == std::vector<std::uint64_t>{50'000, 50'001, 20, 300, 50'321, 54'321});
  CHECK(pool->metrics_locked().bytes == 50'321_B);
  tagged.reset();
  CHECK(held() == std::vector<std::uint64_t>{0, 1, 20, 300, 321, 4321});
  buffers.clear();
  CHECK(held() == std::vector<std::uint64_t>(6, 0));
}

TEST_CASE("a context can be filled to its last byte, and freed memory is available again", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 1, .lane_memory = 1000_B}, {card});
  Lease lease = pool->lease({}, Instant::min()).value();
  std::vector<Buffer> buffers;
  for (int i = 0; i < 10; ++i) buffers.push_back(lease.buffer<std::byte>(100).value());
  CHECK(lease.buffer<std::byte>(1).error() == Errc::over_budget);
  CHECK(lease.buffer<std::byte>(0));
  buffers.pop_back();
  CHECK(lease.buffer<std::byte>(101).error().sentence().find("(900 bytes held of 1000 bytes)") !=
        std::string::npos);
  CHECK(lease.buffer<std::byte>(100));
  CHECK(lease.buffer<std::uint64_t>(~0ull).error() == Errc::invalid_argument);  // the size overflows
}

TEST_CASE("a buffer that outlives its lease is charged to its context until it is freed", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  auto pool = open({.lanes_per_device = 1, .lane_memory = 1000_B}, {card});
  std::optional<Buffer> kept = pool->lease({}, Instant::min())->buffer<std::byte>(700).value();
  {
    Lease next = pool->lease({}, Instant::min()).value();
    CHECK(next.buffer<std::byte>(301).error() == Errc::over_budget);
    CHECK(next.buffer<std::byte>(300));
  }
  Buffer copy = *kept;
  kept.reset();
  CHECK(pool->metrics_locked().bytes == 700_B);  // the copy holds it
  pool.reset();
  CHECK(card->memory().in_use == 700_B);
  copy = Buffer();
  CHECK(card->memory().in_use == 0_B);
}

TEST_CASE("memory that the application takes from a device counts for no context", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 1, .lane_memory = 1000_B}, {card});
  Lease lease = pool->lease({}, Instant::min()).value();
  const Buffer buffer = lease.device().buffer<std::byte>(5000).value();
  CHECK(pool->metrics_locked().bytes == 0_B);
  CHECK(card->memory().in_use == 5000_B);
  CHECK(lease.buffer<std::byte>(1000));
}

namespace {

/// Runs `work` when an allocation needs memory, and gives `gives` back.
class WorkingReclaimable final : public device::Reclaimable {
 public:
  explicit WorkingReclaimable(std::function<Bytes(Bytes)> work) : work_(std::move(work)) {}
  Bytes reclaim(const device::DeviceBase&, Bytes wanted) override { return work_(wanted); }
  IdleMemory kind() const noexcept override { return IdleMemory::executables; }

 private:
  std::function<Bytes(Bytes)> work_;
};

}  // namespace

TEST_CASE("owners of idle memory are asked in order, on the thread that allocates, for the rest", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 1}, {card});
  Lease lease = pool->lease({}, Instant::min()).value();
  std::vector<std::pair<int, Bytes>> asked;
  int elsewhere = 0;
  std::vector<std::shared_ptr<WorkingReclaimable>> owners;
  for (int i = 0; i < 4; ++i) {
    const auto owner = owners.emplace_back(
        std::make_shared<WorkingReclaimable>([&, i, thread = std::this_thread::get_id()](Bytes wanted) {
          elsewhere += std::this_thread::get_id() != thread;
          asked.emplace_back(i, wanted);
          return Bytes{std::uint64_t{300} * static_cast<std::uint64_t>(i + 1)};
        }));
    card->add_reclaimable(owner);
  }
  card->refuse_buffers = 1;
  CHECK(lease.buffer<std::byte>(1000));
  CHECK(asked == std::vector<std::pair<int, Bytes>>{{0, 1000_B}, {1, 700_B}, {2, 100_B}});
  CHECK(elsewhere == 0);
  asked.clear();
  owners.erase(owners.begin());  // it ended
  card->refuse_buffers = 1;
  CHECK(lease.buffer<std::byte>(500));
  CHECK(asked == std::vector<std::pair<int, Bytes>>{{1, 500_B}});
}

TEST_CASE("an owner of idle memory may use the pool while it gives memory back", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 2}, {card});
  Lease lease = pool->lease({}, Instant::min()).value();
  std::optional<Lease> idle = pool->lease({}, Instant::min()).value();
  std::optional<Buffer> spare = idle->buffer<std::byte>(800).value();
  const auto owner = std::make_shared<WorkingReclaimable>([&](Bytes) {
    CHECK(pool->metrics_locked().bytes == 800_B);
    CHECK(pool->lease({}, Instant::min()).error() == Errc::unavailable);
    spare.reset();
    idle.reset();
    CHECK(pool->lease({}, Instant::min())->buffer<std::byte>(10));
    return 800_B;
  });
  card->add_reclaimable(owner);
  card->refuse_buffers = 1;
  CHECK(lease.buffer<std::byte>(400));
  CHECK(pool->metrics_locked().active == 1);
  CHECK(pool->metrics_locked().bytes == 0_B);
}

TEST_CASE("if no memory can be given back, an allocation fails with the device's error, uncharged",
          "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("scripted:0");
  const auto pool = open({.lanes_per_device = 1}, {card});
  Lease lease = pool->lease({}, Instant::min()).value();
  const auto nothing = std::make_shared<WorkingReclaimable>([](Bytes) { return 0_B; });
  card->add_reclaimable(nothing);
  card->refuse_buffers = 1;
  const auto none = lease.buffer<std::byte>(100);
  CHECK(none.error() == Errc::out_of_memory);
  CHECK(none.error().sentence() == "The script has no memory now.");
  CHECK(pool->metrics_locked().bytes == 0_B);
  CHECK(card->memory().in_use == 0_B);
  CHECK(lease.buffer<std::byte>(100));  // the lease has not failed
  CHECK(lease.wait());
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
