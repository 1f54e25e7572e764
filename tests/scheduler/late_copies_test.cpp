// Jobs on arrays whose copies to a device complete late.
#include <wye/wye.hpp>

#include <chrono>
#include <vector>

#include "rig.hpp"

using namespace wye;
using namespace std::chrono_literals;

TEST_CASE("a job copies no array from a device to which its copy is in flight", "[scheduler]") {
  const test::Scripted late = test::scripted("cuda:0"), other = test::scripted("vulkan:0");
  other->reach_others();
  test::Machine machine({late, other});
  const std::vector<float> values(100, 3.0f);
  const auto x = machine.array(values);
  std::vector<float> y(100, 1.0f), z(100, 2.0f);
  late->hold_commands();
  auto first = machine.scheduler.submit(test::copy()(x, y), {.on = "cuda:0"});
  test::await([&] { return late->held() == 2; });  // the copy, and the steps
  REQUIRE(machine.scheduler.run(test::copy()(x, z), {.on = "vulkan:0"}));
  CHECK(z == values);
  late->release();
  CHECK(first.wait(Deadline(60s)));
  CHECK(y == values);
}
