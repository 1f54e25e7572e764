// Budgets of processors, pools and tags; pressure; and the order in which idle memory is freed.
#include <wye/pool/context_pool.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "all_devices.hpp"
#include "base/internals.hpp"
#include "pool/pool.hpp"
#include "support/catch.hpp"
#include "support/device/memory_device.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace wye::literals;

namespace {

using Level = MemoryPressure::Level;

/// Notes when it is asked for memory.
class Noting final : public device::Reclaimable {
 public:
  Noting(IdleMemory kind, std::string name, std::vector<std::string>& asked, std::uint64_t last_use = 0)
      : kind_(kind), name_(std::move(name)), asked_(asked), last_use_(last_use) {}
  Bytes reclaim(const device::DeviceBase&, Bytes) override {
    asked_.push_back(name_);
    return 1_B;
  }
  IdleMemory kind() const noexcept override { return kind_; }
  std::uint64_t last_use(const device::DeviceBase&) const noexcept override { return last_use_; }

 private:
  IdleMemory kind_;
  std::string name_;
  std::vector<std::string>& asked_;
  std::uint64_t last_use_;
};

struct Report {
  Level level;
  std::string limited;
  Bytes held, limit;
  friend bool operator==(const Report&, const Report&) = default;
};

/// Reserves `bytes` for a job on the first device.
Result<pool::Reservation> reserve(const ContextPool& pool, Bytes bytes) {
  pool::Pool& state = *base::state_of(pool);
  pool::Reservation reserved;
  if (auto done =
          state.accounts().reserve(0, nullptr, {.own = bytes, .replicas = {}}, state.clock().now(), reserved);
      !done)
    return std::move(done).error();
  return reserved;
}

}  // namespace

TEST_CASE("the smallest budget of a processor holds for all pools and backends while its pool is open",
          "[pool]") {
  const auto cuda = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB, 51);
  const auto vulkan = std::make_shared<test::MemoryDevice>("vulkan:0", 1_MiB, 51);
  ContextPool wide = test::pool_over({cuda}, {.silicon_memory = 64_KiB});
  std::optional<ContextPool> narrow = test::pool_over({vulkan}, {.silicon_memory = 8_KiB});
  Lease a = wide.lease().value();
  std::optional<Lease> b = narrow->lease().value();
  std::optional<Buffer> in_b = b->buffer<std::byte>(6144).value();
  const auto over = a.buffer<std::byte>(4096);
  REQUIRE_FALSE(over);
  CHECK(over.error() == Errc::out_of_memory);
  CHECK(over.error().sentence() ==
        "Allocation (4.00 KiB) exceeds the rest of the budget of silicon 'scripted cuda:0' (6.00 KiB held of "
        "8.00 KiB).");
  CHECK(over.error().describe().find(
            "this process holds 6.00 KiB of 'scripted cuda:0': 6.00 KiB in context 'vulkan:0#0'") !=
        std::string::npos);
  CHECK(a.buffer<std::byte>(2048));
  in_b.reset(), b.reset(), narrow.reset();
  CHECK(a.buffer<std::byte>(32768));
  CHECK(a.buffer<std::byte>(65537).error() == Errc::out_of_memory);
}

TEST_CASE("a pool's budget covers its arrays and contexts, and not those of other pools", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB, 52);
  ContextPool one = test::pool_over({card}, {.pool_memory = 8_KiB}), two = test::pool_over({card}, {});
  Lease a = one.lease().value(), b = two.lease().value();
  const Buffer other = b.buffer<std::byte>(100000).value(), own = a.buffer<std::byte>(8192).value();
  CHECK(
      a.buffer<std::byte>(1).error().sentence() ==
      "Allocation (1 byte) exceeds the rest of the budget of runtime 'cuda:0' (8.00 KiB held of 8.00 KiB).");
  CHECK(reserve(one, 1_B).error() == Errc::over_budget);
  CHECK(reserve(two, 100000_B));
}

TEST_CASE("the budget of a tag limits its leases, over contexts", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB);
  ContextPool pool = test::pool_over({card}, {.lanes_per_device = 3, .tag_memory = {{"preview", 4_KiB}}});
  std::optional<Buffer> kept;
  {
    Lease a = pool.lease({.tag = "preview"}).value(), b = pool.lease({.tag = "preview"}).value();
    kept = a.buffer<std::byte>(3000).value();
    CHECK(b.buffer<std::byte>(1097).error().sentence() ==
          "Allocation (1097 bytes) exceeds the rest of the budget of tag 'preview' (3000 bytes held of 4096 "
          "bytes).");
    CHECK(b.buffer<std::byte>(1096));
    Lease c = pool.lease({.tag = "other"}).value();
    CHECK(c.buffer<std::byte>(100000));
  }
  Lease untagged = pool.lease().value();  // the context of a lease before
  CHECK(untagged.buffer<std::byte>(100000));
  CHECK(pool.silicon().front().memory.back().held == 3000_B);  // the buffer has outlived its lease
  kept.reset();
  CHECK(pool.silicon().front().memory.back().held == 0_B);
}

TEST_CASE("idle memory is freed by kind, then the least recently used first; trim stops at its kind",
          "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB);
  ContextPool pool = test::pool_over({card}, {.lanes_per_device = 2});
  std::vector<std::string> asked;
  std::vector<std::shared_ptr<Noting>> owners;
  const auto add = [&](IdleMemory kind, const char* name, std::uint64_t use) {
    owners.push_back(std::make_shared<Noting>(kind, name, asked, use));
    card->add_reclaimable(owners.back());
  };
  add(IdleMemory::replicas, "replica 7", 7);
  add(IdleMemory::replicas, "replica 3", 3);
  add(IdleMemory::executables, "kernels", 9);
  add(IdleMemory::contexts, "context", 8);
  const std::vector<std::string> all{"context", "kernels", "replica 3", "replica 7"};
  card->refuse_buffers = 1;
  CHECK(Device(card).buffer<std::byte>(100));
  CHECK(asked == all);
  for (std::size_t kinds = 1; kinds <= 3; ++kinds) {
    asked.clear();
    CHECK(pool.trim(static_cast<IdleMemory>(kinds - 1)).count == (kinds < 3 ? kinds : 4));
    CHECK(asked ==
          std::vector<std::string>(all.begin(), all.begin() + (kinds < 3 ? static_cast<int>(kinds) : 4)));
  }
}

TEST_CASE("trim frees the lanes of idle contexts but those made ahead", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB);
  ContextPool pool = test::pool_over({card}, {.lanes_per_device = 3, .contexts_ahead = 1});
  { Lease a = pool.lease().value(), b = pool.lease().value(), c = pool.lease().value(); }
  // Contexts that can be leased without a new lane.
  const auto lanes = [&] {
    std::vector<Lease> held;
    card->refuse_lanes = 3;
    while (auto lease = pool.try_lease()) held.push_back(*std::move(lease));
    card->refuse_lanes = 0;
    return held.size();
  };
  CHECK(lanes() == 3);
  Lease busy = pool.lease().value();
  pool.trim(IdleMemory::contexts);
  CHECK(lanes() == 0);  // `contexts_ahead` keeps one lane, and the leased context has it
}

TEST_CASE("memory of other programs limits a reservation as the driver tells it", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB, 53);
  ContextPool pool = test::pool_over({card}, {});
  card->others = 1_MiB - 10_KiB;
  Lease lease = pool.lease().value();
  const Buffer own = lease.buffer<std::byte>(4096).value();
  CHECK(reserve(pool, 6_KiB));
  const auto over = reserve(pool, 7_KiB);
  REQUIRE_FALSE(over);
  CHECK(over.error() == Errc::out_of_memory);
  CHECK(over.error().sentence() ==
        "Allocation (7.00 KiB) exceeds the rest of the budget of silicon 'scripted cuda:0' (4.00 KiB held of "
        "10.0 KiB).");
  card->others = 0_B;  // it is asked again before anything is refused
  CHECK(lease.buffer<std::byte>(512 << 10));
  CHECK(reserve(pool, 512_KiB));
  const auto limit = base::state_of(pool)->accounts().limit_of(0, nullptr, {.own = 2_MiB, .replicas = {}});
  REQUIRE(limit);
  CHECK((limit->code == Errc::out_of_memory && limit->needed == 2_MiB && limit->limit == 1_MiB));
}

TEST_CASE("pressure is reported when its level changes, without a lock", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB, 54);
  std::vector<Report> reports;
  std::optional<ContextPool> pool;
  pool = test::pool_over(
      {card},
      {.silicon_memory = 512_KiB,
       .pool_memory = 100000_B,
       .on_pressure = [&](const MemoryPressure& pressure) {
         CHECK(pressure.silicon == "scripted cuda:0");
         CHECK(pool->silicon().front().pressure == pressure.level);  // takes the pool's lock
         reports.push_back({pressure.level, std::string(pressure.limited), pressure.held, pressure.limit});
         throw 1;
       }});
  Lease lease = pool->lease().value();
  std::vector<Buffer> buffers;
  // The listener asserts, so nothing else does meanwhile.
  const auto flush = [&] { return base::state_of(*pool)->journal().flush(); };
  bool is_flushed = true;
  for (const unsigned bytes : {79999u, 1u, 14000u, 1000u, 4000u}) {
    buffers.push_back(lease.buffer<std::byte>(bytes).value());
    is_flushed &= flush();
  }
  CHECK(is_flushed);
  CHECK(reports == std::vector<Report>{{Level::some, "runtime", 80000_B, 100000_B},
                                       {Level::high, "runtime", 95000_B, 100000_B}});
  buffers.clear();
  const bool is_leased = pool->try_lease().has_value();
  is_flushed &= flush();
  CHECK((is_leased && is_flushed));
  REQUIRE(reports.size() == 3);
  CHECK(reports.back() == Report{Level::none, "silicon", 0_B, 512_KiB});
}

TEST_CASE("every device allocates and computes as before after trim", "[pool]") {
  ContextPool pool = test::all_devices({.lanes_per_device = 1});
  for (int round = 0; round < 2; ++round) {
    for (const Device& device : pool.devices()) {
      INFO(device.id());
      Lease lease = pool.lease({.on = device.id()}).value();
      const std::vector<std::uint32_t> source{1, 2, 3};
      std::vector<std::uint32_t> target(3);
      {
        const Buffer large = lease.buffer<std::byte>(8 << 20).value();
        const Buffer small = lease.buffer<std::uint32_t>(3).value();
        lease.upload(source, small);
        lease.download(small, std::span(target));
        REQUIRE(lease.wait());
      }
      CHECK((target == source || device.info().backend == "null"));
      const MemoryInfo before = device.memory();
      pool.trim();
      CHECK(device.memory().in_use <= before.in_use);
      CHECK(device.memory().spare <= before.spare);
    }
    pool.trim();  // no context is leased
  }
}

TEST_CASE("the arrays of a job do not count for the budget of its tag", "[pool]") {
  const auto card = std::make_shared<test::MemoryDevice>("cuda:0", 1_MiB);
  ContextPool pool = test::pool_over({card}, {.tag_memory = {{"preview", 4_KiB}}});
  pool::Pool& state = *base::state_of(pool);
  const auto tag = state.accounts().of_tag(0, "preview");
  pool::Reservation reserved;
  REQUIRE(state.accounts()
              .reserve(0, tag, {.own = 3_KiB, .replicas = 8_KiB}, state.clock().now(), reserved)
              .has_value());
  CHECK(tag->held() == 3_KiB);
  CHECK(state.accounts().of(*card)->held() == 11_KiB);
  reserved = {};
  CHECK(tag->held() == 0_B);
  const auto over =
      state.accounts().reserve(0, tag, {.own = 5_KiB, .replicas = {}}, state.clock().now(), reserved);
  REQUIRE_FALSE(over);
  CHECK(over.error() == Errc::over_budget);
}
