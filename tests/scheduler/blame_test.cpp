// Which kernels are blamed for losses of a device.
#include <wye/wye.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;
using Step = test::ScriptedDevice::Step;

TEST_CASE("a kernel is not blamed for losses of a device before any of its commands began",
          "[scheduler][recovery]") {
  ManualClock clock;
  const test::Scripted first = test::scripted("vulkan:0", AdapterType::discrete, {}, 72),
                       other = test::scripted("cuda:0");
  bool loses = false;  // the device, when the next job allocates its memory
  const auto prepare = [&loses](test::ScriptedDevice& device) {
    device.set_script([&loses, &device](Step now) -> std::optional<Error> {
      if (now != Step::create_buffer || !std::exchange(loses, false)) return std::nullopt;
      device.lose();
      return *device.lost();
    });
  };
  prepare(*first);
  const auto adapter = std::make_shared<test::Reopening>(first->info());
  adapter->prepare = prepare;
  const ContextPool pool = test::pool_of({first, other}, {.clock = &clock}, {adapter, nullptr});
  Scheduler scheduler = test::scheduler_on(pool, {first, other}, {.clock = &clock});
  std::vector<float> x(10, 1.0f);
  const auto suspected = test::host_scale("suspected"), good = test::host_scale();
  const auto runs_on = [&](const auto& kernel) { return scheduler.run(kernel(x, 1.0f)).value().device().id; };
  for (int losses = 0; losses < 5; ++losses) {
    CHECK(runs_on(good) == "vulkan:0");  // it is open again
    loses = true;
    CHECK(runs_on(suspected) == "cuda:0");
    clock.advance(31s);  // the end of the quarantine
  }
  CHECK(runs_on(suspected) == "vulkan:0");
  CHECK(pool.metrics().recoveries == 5);
}
