// The parts of a pool, each without the others.
#include <wye/pool/context_pool.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/internals.hpp"
#include "pool/accounts.hpp"
#include "pool/context.hpp"
#include "pool/fleet.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;
using pool::Accounts;
using pool::DeviceContexts;
using pool::Fleet;
using test::Reopening;
using test::Scripted;
using test::scripted;

namespace {

std::shared_ptr<const PoolOptions> options_of(PoolOptions options = {}) {
  return std::make_shared<const PoolOptions>(std::move(options));
}

std::size_t prepare(Fleet& fleet, const Scripted& device, std::shared_ptr<Reopening> adapter = nullptr) {
  return fleet.prepare(device, std::move(adapter), device->info().id);
}

}  // namespace

TEST_CASE("a device of a fleet is found once it is published, and never if it is discarded",
          "[pool][parts]") {
  const Scripted first = scripted("cuda:0"), second = scripted("vulkan:0"), third = scripted("vulkan:1");
  Fleet fleet(options_of(), 4, nullptr, base::Journal::make());
  CHECK(prepare(fleet, first) == 0);
  CHECK(fleet.size() == 0);
  CHECK_FALSE(fleet.find(first->ref()));
  fleet.publish();
  CHECK(fleet.size() == 1);
  CHECK(fleet.find(first->ref()) == 0);
  CHECK(prepare(fleet, second) == 1);
  CHECK(fleet.prepared() == 2);
  fleet.discard(1);
  CHECK(fleet.prepared() == 1);
  CHECK(second.use_count() == 1);
  CHECK(prepare(fleet, third) == 1);
  fleet.publish();
  CHECK(fleet.info(1).id == "vulkan:1");
  CHECK_FALSE(fleet.find(second->ref()));
  CHECK(fleet.find(*second).error() == Errc::invalid_argument);
  CHECK(fleet.limit() == 4);
}

TEST_CASE("a fleet numbers processors in the order of their devices", "[pool][parts]") {
  Fleet fleet(options_of(), 3, nullptr, base::Journal::make());
  prepare(fleet, scripted("cuda:0", AdapterType::discrete, {}, 7));
  prepare(fleet, scripted("cuda:1", AdapterType::discrete, {}, 8));
  prepare(fleet, scripted("vulkan:0", AdapterType::discrete, {}, 7));
  CHECK(fleet.processors_of(1) == 1);
  CHECK(fleet.processors_of(3) == 2);
  CHECK(fleet.processor_count() == 0);
  fleet.publish();
  CHECK(fleet.processor_count() == 2);
  CHECK(fleet.processor_of(0) == fleet.processor_of(2));
  CHECK(fleet.processor_of(1) == 1);
  std::vector<std::size_t> seen;
  CHECK_FALSE(fleet.any_on(0, [&](std::size_t device) { return seen.push_back(device), false; }));
  CHECK(seen == std::vector<std::size_t>{0, 2});
}

TEST_CASE("a fleet selects devices by id, backend, index and features", "[pool][parts]") {
  const Scripted lost = scripted("cuda:1", AdapterType::discrete, Features{Feature::float64});
  Fleet fleet(options_of(), 3, nullptr, base::Journal::make());
  prepare(fleet, scripted("cuda:0"));
  prepare(fleet, lost);
  prepare(fleet, scripted("vulkan:0", AdapterType::discrete, Features{Feature::float64}));
  fleet.publish();
  const auto selected = [&](const pool::DeviceFilter& filter) {
    std::vector<std::size_t> all;
    for (std::size_t d = 0; d < fleet.size(); ++d)
      if (fleet.is_candidate(d, filter)) all.push_back(d);
    return all;
  };
  using Indices = std::vector<std::size_t>;
  CHECK(selected({}) == Indices{0, 1, 2});
  CHECK(selected({.on = "cuda"}) == Indices{0, 1});
  CHECK(selected({.on = "vulkan:0"}) == Indices{2});
  CHECK(selected({.needs = Features{Feature::float64}}) == Indices{1, 2});
  CHECK(selected({.on = "vulkan", .only = 0}) == Indices{0});
  CHECK(selected({.on = "cuda", .needs = Features{Feature::float64}}) == Indices{1});
  lost->lose();
  CHECK(selected({}) == Indices{0, 2});
  CHECK(fleet.no_candidate({.on = "cuda:1"}) == Errc::device_lost);
  CHECK(fleet.no_candidate({.on = "cpu"}) == Errc::not_found);
  const Error lacking = fleet.no_candidate({.on = "cuda:0", .needs = Features{Feature::float64}});
  CHECK(lacking == Errc::unsupported);
  CHECK(lacking.sentence().find("'cuda:0'") != std::string::npos);
}

TEST_CASE("one caller at a time probes a lost device, and a failure makes the next one wait",
          "[pool][parts][health]") {
  ManualClock clock;
  const Scripted device = scripted("vulkan:0", AdapterType::discrete, {}, 62);
  const auto adapter = std::make_shared<Reopening>(device->info());
  Fleet fleet(options_of({.clock = &clock}), 1, nullptr, base::Journal::make());
  prepare(fleet, device, adapter);
  fleet.publish();
  CHECK_FALSE(fleet.begin_probe(0, false));
  CHECK_FALSE(fleet.note_losses({}));
  device->lose();
  CHECK(fleet.note_losses({}));
  CHECK(fleet.has_lost());
  CHECK(fleet.state_of(0).health == DeviceHealth::quarantined);
  REQUIRE(fleet.begin_probe(0, false));
  CHECK_FALSE(fleet.begin_probe(0, false));
  CHECK(fleet.state_of(0).health == DeviceHealth::probing);
  fleet.quarantine(0, Error(Errc::unavailable, "It is not there."));
  CHECK(fleet.state_of(0).last_fault->sentence() == "It is not there.");
  fleet.quarantine(0, Error(Errc::unavailable, "It is not being probed."));
  CHECK(fleet.state_of(0).last_fault->sentence() == "It is not there.");
  CHECK_FALSE(fleet.begin_probe(0, false));
  clock.advance(100ms);
  REQUIRE(fleet.begin_probe(0, false));
  fleet.install(0, fleet.open_again(0).value());
  CHECK(fleet.state_of(0).health == DeviceHealth::healthy);
  CHECK(fleet.state_of(0).generation == 2);
  CHECK(fleet.recoveries() == 1);
  CHECK_FALSE(fleet.find(device->ref()));
  CHECK(fleet.find(adapter->devices.at(0)->ref()) == 0);
  for (int job = 0; job < 16; ++job) fleet.note_completion(0);
  CHECK_FALSE(fleet.has_lost());
}

TEST_CASE("a device is suspect while a lane of it has unfinished work of a job", "[pool][parts][health]") {
  Fleet fleet(options_of(), 2, nullptr, base::Journal::make());
  prepare(fleet, scripted("cuda:0"));
  prepare(fleet, scripted("cuda:1"));
  fleet.publish();
  fleet.count_unfinished(1, 1);
  fleet.count_unfinished(1, 1);
  CHECK(fleet.suspicion(0) == pool::Suspicion::none);
  CHECK(fleet.suspicion(1) == pool::Suspicion::unfinished_work);
  CHECK(fleet.state_of(1).health == DeviceHealth::suspect);
  fleet.count_unfinished(1, -1);
  CHECK(fleet.suspicion(1) == pool::Suspicion::unfinished_work);
  fleet.count_unfinished(1, -1);
  CHECK(fleet.suspicion(1) == pool::Suspicion::none);
}

TEST_CASE("the accounts of a processor are there while it is prepared", "[pool][parts][memory]") {
  const Scripted device = scripted("cuda:0", AdapterType::discrete, {}, 63);
  const auto options = options_of(
      {.silicon_memory = 64_KiB, .pool_memory = 16_KiB, .tag_memory = {{.tag = "preview", .memory = 8_KiB}}});
  Fleet fleet(options, 2, nullptr, base::Journal::make());
  Accounts accounts(options, fleet, base::Journal::make());
  const Bytes unlimited = device->silicon()->account()->limit();
  prepare(fleet, device);
  accounts.prepare("cuda:0");
  fleet.publish();
  CHECK(device->silicon()->account()->limit() == 64_KiB);
  CHECK(accounts.of(0)->limit() == 16_KiB);
  CHECK(accounts.of(*device) == accounts.of(0));
  CHECK(accounts.of_tag(0, "preview")->limit() == 8_KiB);
  CHECK_FALSE(accounts.of_tag(0, "other"));
  CHECK(accounts.limit_of(0, nullptr, {.own = {}, .replicas = 17_KiB})->code == Errc::over_budget);
  {
    pool::Reservation reserved;
    REQUIRE(accounts.reserve(0, accounts.of_tag(0, "preview"), {.own = 8_KiB, .replicas = 8_KiB},
                             fleet.clock().now(), reserved));
    CHECK(accounts.held() == 16_KiB);
    pool::Reservation second;
    CHECK(accounts.reserve(0, nullptr, {.own = {}, .replicas = 1_B}, fleet.clock().now(), second).error() ==
          Errc::over_budget);
  }
  CHECK(accounts.held() == 0_B);
  accounts.discard(0);
  CHECK(device->silicon()->account()->limit() == unlimited);
}

TEST_CASE("the idle context to lease has a lane if there is one, and was used least recently",
          "[pool][parts]") {
  const auto options = options_of({.lanes_per_device = 3});
  Fleet fleet(options, 1, nullptr, base::Journal::make());
  Accounts accounts(options, fleet, base::Journal::make());
  prepare(fleet, scripted("cuda:0"));
  accounts.prepare("cuda:0");
  fleet.publish();
  pool::Switches switches(base::Journal::make(), fleet);
  DeviceContexts contexts;
  contexts.make(0, fleet, switches, *options, accounts.of(0));
  auto& all = contexts.all;
  CHECK(contexts.best_idle(false) == all[0].get());
  CHECK(contexts.best_idle(true) == nullptr);
  for (const std::size_t c : {1u, 2u}) {
    REQUIRE(all[c]->make_lane(fleet));
    all[c]->has_lane = true;
    all[c]->last_used = 10 - c;
  }
  CHECK(contexts.best_idle(false) == all[2].get());
  all[2]->leased = true;
  CHECK(contexts.leased() == 1);
  CHECK(contexts.best_idle(true) == all[1].get());

  pool::Lanes ended;
  const Instant start = fleet.clock().now();
  contexts.trim(start, 1s, 0, ended);
  CHECK(ended.empty());  // it has been idle since then
  contexts.trim(start + 1s, 1s, 2, ended);
  CHECK(ended.empty());  // two lanes are kept
  contexts.trim(start + 1s, 1s, 0, ended);
  CHECK(ended.size() == 1);
  CHECK_FALSE(all[1]->has_lane);
  CHECK(all[2]->has_lane);
}
