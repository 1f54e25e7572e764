// Which context a lease gets.
#include <wye/pool/context_pool.hpp>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/internals.hpp"
#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::fail;
using test::pool_of;
using test::scripted;
using Step = test::ScriptedDevice::Step;

TEST_CASE("the first device is leased while it has an idle context, then the next", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0"), scripted("vulkan:0")}, {.lanes_per_device = 2});
  std::vector<Lease> leases;
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(leases.emplace_back(pool.try_lease().value()).id());
  CHECK(ids == std::vector<std::string>{"cuda:0#0", "cuda:0#1", "vulkan:0#0", "vulkan:0#1"});
  leases.erase(leases.begin() + 1);
  CHECK(pool.try_lease()->id() == "cuda:0#1");
}

TEST_CASE("a request for a backend gets any of its devices, and a request for a device only that", "[pool]") {
  ContextPool pool =
      pool_of({scripted("cuda:0"), scripted("cuda:1"), scripted("vulkan:0")}, {.lanes_per_device = 1});
  {
    const auto second = pool.try_lease({.on = "cuda:1"}).value();
    CHECK(second.id() == "cuda:1#0");
    CHECK(pool.try_lease({.on = "cuda:1"}).error() == Errc::unavailable);
    const auto first = pool.try_lease({.on = "cuda"}).value();
    CHECK(first.id() == "cuda:0#0");
    CHECK(pool.try_lease({.on = "cuda"}).error() == Errc::unavailable);
    CHECK(pool.try_lease({.on = "vulkan"})->id() == "vulkan:0#0");
  }
  CHECK(pool.try_lease({.on = "cuda"})->id() == "cuda:1#0");  // of equal devices, the least recently used
}

TEST_CASE("the name of a device is matched whole", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:10")});
  for (const char* name : {"cuda:1", "cuda:", "cud", "CUDA", "cuda:10#0", "10"}) {
    CAPTURE(name);
    const auto none = pool.try_lease({.on = name});
    REQUIRE_FALSE(none);
    CHECK(none.error().sentence() == "There is no device or backend '" + std::string(name) +
                                         "' (devices: 'cuda:10'; backends: 'cuda').");
  }
  CHECK(pool.try_lease({.on = "cuda:10"}));
}

TEST_CASE("a request goes to the first device with all features that it needs", "[pool]") {
  ContextPool pool = pool_of({scripted("cuda:0", AdapterType::discrete, {Feature::float64}),
                              scripted("vulkan:0", AdapterType::discrete, {Feature::float64, Feature::int8})},
                             {.lanes_per_device = 1});
  CHECK(pool.try_lease()->device().id() == "cuda:0");
  CHECK(pool.try_lease({.needs = {Feature::float64}})->device().id() == "cuda:0");
  const auto lease = pool.try_lease({.needs = {Feature::float64, Feature::int8}}).value();
  CHECK(lease.device().id() == "vulkan:0");
  CHECK(pool.try_lease({.needs = {Feature::int8}}).error() == Errc::unavailable);
  CHECK(pool.try_lease({.needs = {Feature::float64}})->device().id() == "cuda:0");
}

TEST_CASE("a request for features that no named device has tells which are missing", "[pool]") {
  ContextPool pool =
      pool_of({scripted("cuda:0", AdapterType::discrete, {Feature::float64}),
               scripted("vulkan:0", AdapterType::discrete, {Feature::float64, Feature::int8})});
  const auto none = pool.lease({.on = "cuda", .needs = {Feature::float64, Feature::int8}});
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::unsupported);
  CHECK(none.error().sentence() == "No device has the needed features (float64, int8): 'cuda:0' lacks int8.");
}

TEST_CASE("a context with a lane is leased before a context without one", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 3});
  {
    auto a = pool.try_lease().value(), b = pool.try_lease().value();
    fail(a);
  }
  CHECK(device->count(Step::create_lane) == 2);
  // cuda:0#0 was leased before, but has no lane any more. cuda:0#2 never had one.
  for (int i = 0; i < 5; ++i) CHECK(pool.try_lease()->id() == "cuda:0#1");
  CHECK(device->count(Step::create_lane) == 2);
  const auto held = pool.try_lease().value();
  CHECK(pool.try_lease()->id() == "cuda:0#2");  // of two without a lane, the least recently used
  CHECK(device->count(Step::create_lane) == 3);
}

TEST_CASE("contexts with a lane are leased in turn", "[pool]") {
  const auto device = scripted("cuda:0");
  ContextPool pool = pool_of({device}, {.lanes_per_device = 3});
  { const auto a = pool.try_lease(), b = pool.try_lease(), c = pool.try_lease(); }
  std::string order;
  for (int i = 0; i < 6; ++i) order += pool.try_lease()->id().back();
  CHECK(order == "012012");
}

TEST_CASE("a device that refuses a lane is asked again by the next request", "[pool]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  std::atomic<bool> refuses{true};
  first->set_script([&](Step step) -> std::optional<Error> {
    if (step != Step::create_lane || !refuses) return std::nullopt;
    return Error(Errc::out_of_memory, "The device has no memory.");
  });
  ContextPool pool = pool_of({first, second}, {.lanes_per_device = 2});
  CHECK(pool.try_lease()->device().id() == "vulkan:0");
  CHECK(first->count(Step::create_lane) == 1);  // its second context is not tried
  refuses = false;
  CHECK(pool.try_lease()->device().id() == "cuda:0");
}

TEST_CASE("if every device refuses a lane, the error is that of the last, with its context", "[pool]") {
  const auto first = scripted("cuda:0"), second = scripted("vulkan:0");
  first->fail_at(Step::create_lane, Errc::out_of_memory);
  second->fail_at(Step::create_lane, Errc::unavailable);
  ContextPool pool = pool_of({first, second});
  const auto none = pool.lease();
  REQUIRE_FALSE(none);
  CHECK(none.error() == Errc::unavailable);
  REQUIRE(none.error().context().size() == 1);
  CHECK(none.error().context()[0] == "while creating context 'vulkan:0#0'");
  CHECK(pool.metrics().active == 0);
}

TEST_CASE("an idle context is leased even if the deadline has passed", "[pool]") {
  ManualClock clock;
  ContextPool pool = pool_of({scripted("cuda:0")}, {.lease_timeout = 0s, .clock = &clock});
  CHECK(pool.lease());
  CHECK(pool.lease({.deadline = 0s}));
  CHECK(pool.lease({.deadline = Deadline(Instant())}));
}
