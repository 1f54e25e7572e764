// Contexts that a pool creates when it opens, and lanes of idle contexts, which end.
#include <wye/pool/context_pool.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/scripted_pool.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::pool_of;
using test::scripted;
using Step = test::ScriptedDevice::Step;

TEST_CASE("contexts made ahead have their lanes when the pool has opened", "[pool]") {
  const auto device = scripted("cuda:0"), other = scripted("vulkan:0");
  ContextPool pool = pool_of({device, other}, {.lanes_per_device = 3, .contexts_ahead = 2});
  CHECK(device->lanes_alive() == 2);
  CHECK(other->lanes_alive() == 2);
  CHECK(pool.contexts().empty());  // none was leased
  CHECK(pool.metrics().leases == 0);
  std::vector<Lease> leases;
  for (int i = 0; i < 3; ++i) leases.push_back(pool.lease({.on = "cuda:0"}).value());
  CHECK(device->count(Step::create_lane) == 3);
}

TEST_CASE("a device that refuses a context ahead is asked again by the lease that needs it", "[pool]") {
  std::vector<std::string> log;
  const auto device = scripted("cuda:0");
  device->fail_at(Step::create_lane, Errc::out_of_memory);
  ContextPool pool =
      pool_of({device}, {.lanes_per_device = 2, .contexts_ahead = 2, .log = [&](const LogRecord& one) {
                           log.emplace_back(one.text);
                         }});
  REQUIRE(log.size() == 1);
  CHECK(log[0].find("while creating context 'cuda:0#0'") != std::string::npos);
  device->set_script({});
  CHECK(pool.lease());
}

TEST_CASE("the lane of a context that was idle for `idle_trim` ends with a later lease", "[pool]") {
  ManualClock clock;
  const auto device = scripted("cuda:0"), other = scripted("vulkan:0");
  ContextPool pool = pool_of({device, other},
                             {.lanes_per_device = 4, .contexts_ahead = 1, .idle_trim = 8s, .clock = &clock});
  Lease busy = pool.lease({.on = "cuda:0"}).value();
  {
    std::vector<Lease> leases;
    for (int i = 0; i < 3; ++i) leases.push_back(pool.lease({.on = "cuda:0"}).value());
  }
  const auto lanes_after = [&](Duration time) {
    clock.advance(time);
    REQUIRE(pool.lease({.on = "vulkan:0"}));
    return device->lanes_alive();
  };
  CHECK(lanes_after(2s) == 4);  // this check sees them idle for the first time
  CHECK(lanes_after(7s) == 4);
  CHECK(lanes_after(2s) == 1);
  CHECK(lanes_after(1h) == 1);  // the leased one
  const Buffer buffer = busy.buffer<float>(4).value();
  busy.fill(buffer, 0);
  CHECK(busy.wait());
  const Lease second = pool.lease({.on = "cuda:0"}).value();
  CHECK(device->lanes_alive() == 2);
  CHECK(pool.metrics().contexts == 5);  // leased so far
  { const Lease ends = std::move(busy); }
  CHECK(lanes_after(1h) == 2);
  CHECK(lanes_after(1h) == 1);
}

TEST_CASE("a context in regular use keeps its lane, and so does a context made ahead", "[pool]") {
  ManualClock clock;
  const auto device = scripted("cuda:0"), other = scripted("vulkan:0");
  ContextPool pool = pool_of({device, other},
                             {.lanes_per_device = 1, .contexts_ahead = 1, .idle_trim = 8s, .clock = &clock});
  for (int i = 0; i < 20; ++i) {
    clock.advance(5s);
    CHECK(pool.lease({.on = "cuda:0"}));
  }
  clock.advance(1h);
  CHECK(pool.lease({.on = "vulkan:0"}));
  CHECK(device->count(Step::create_lane) == 1);
  CHECK(device->lanes_alive() == 1);
}

TEST_CASE("without a limit of idle time no lane ends", "[pool]") {
  ManualClock clock;
  const auto device = scripted("cuda:0");
  ContextPool pool =
      pool_of({device}, {.lanes_per_device = 2, .idle_trim = Duration::max(), .clock = &clock});
  { const Lease a = pool.lease().value(), b = pool.lease().value(); }
  for (int i = 0; i < 10; ++i) {
    clock.advance(24h);
    CHECK(pool.lease());
  }
  CHECK(device->lanes_alive() == 2);
}
