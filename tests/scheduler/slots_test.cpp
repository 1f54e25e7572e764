// Slots that follow the load: the scheduler tells the pool the run times of its jobs.
#include <wye/runtime/runtime.hpp>

#include <chrono>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// Runs as long as the script says, by its clock.
struct Script {
  ManualClock clock;
  Duration takes{};
};
Script* script = nullptr;

void take_time(wye::Range, std::span<float>, int) { script->clock.advance(script->takes); }

}  // namespace

TEST_CASE("the slots of a processor follow the run times of jobs", "[scheduler]") {
  Script now;
  script = &now;
  Runtime runtime =
      Runtime::open(
          {.pool = {.backends = {"cpu"}, .slots = 3, .slot_rule = SlotRule::load, .clock = &now.clock}})
          .value();
  const auto kernel =
      Kernel<ReadWrite<float>, int>::make({.name = "take_time", .sources = {host(take_time)}});
  std::vector<float> x(1, 1.0f);  // one call: a range of more items may be divided
  const auto slots_after = [&](int jobs, Duration each) {
    now.takes = each;
    for (int i = 0; i < jobs; ++i) REQUIRE(runtime.run((*kernel)(x, 1)));
    return runtime.pool().silicon().at(0).slots;
  };
  CHECK(slots_after(32, 10ms) == 3);
  CHECK(slots_after(16, 30ms) == 2);
  CHECK(slots_after(16, 30ms) == 1);
  CHECK(slots_after(64, 10ms) == 1);
}
