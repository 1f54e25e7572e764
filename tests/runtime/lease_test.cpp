// Leases by the type of the work.
#include <wye/wye.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace wye;
using namespace wye::literals;
using namespace std::chrono_literals;

namespace {

Runtime open(const Clock* clock = nullptr) {
  return Runtime::open({.pool = {.backends = {"null", "cpu"}, .lanes_per_device = 1, .clock = clock},
                        .scheduler = {.preferences = {{workload_types::matrix, 0_B, {"cpu", "null"}},
                                                      {workload_types::matrix, 1_MiB, {"null", "cpu"}},
                                                      {workload_types::image, 0_B, {"cpu"}}}}})
      .value();
}

}  // namespace

TEST_CASE("a lease for a workload gets the device that the scheduler prefers for it", "[runtime]") {
  Runtime runtime = open();
  CHECK(runtime.lease(workload_types::matrix)->device().id() == "cpu:0");
  CHECK(runtime.lease(workload_types::matrix, 1_MiB)->device().id() == "null:0");
  CHECK(runtime.lease(workload_types::image)->device().id() == "cpu:0");
  CHECK(runtime.pool().lease()->device().id() == "null:0");
  CHECK(runtime.lease(workload_types::matrix, {}, {.on = "null"})->device().id() == "null:0");
}

TEST_CASE("a lease for a workload gets the next device if the preferred one is in use", "[runtime]") {
  Runtime runtime = open();
  const Lease preferred = runtime.lease(workload_types::image).value();
  const Lease next = runtime.lease(workload_types::image).value();  // its row does not name this one
  CHECK(next.device().id() == "null:0");
}

TEST_CASE("the error of a lease for a workload names the workload and the holders", "[runtime]") {
  ManualClock clock;
  Runtime runtime = open(&clock);
  const Lease preview = runtime.lease(workload_types::image, {}, {.tag = "preview"}).value();
  const Lease other = runtime.lease(workload_types::image, {}, {.tag = "export"}).value();
  for (const WorkloadType type : {workload_types::matrix, workload_types::shader_compilation}) {
    const auto none = runtime.lease(type, {}, {.deadline = 10ms});
    REQUIRE_FALSE(none);
    CHECK(none.error() == Errc::timed_out);
    CHECK(none.error().sentence() ==
          "No context of 'null:0', 'cpu:0' for workload '" + std::string(type.name) +
              "' became free within 0.01 s (2 of 2 leased; oldest for 0.0 s; held by 'export' for 0.0 s, "
              "'preview' for 0.0 s).");
  }
  const auto never = runtime.lease(workload_types::matrix, {}, {.deadline = Deadline::never()});
  REQUIRE_FALSE(never);
  CHECK(never.error().sentence().find("for workload 'matrix' without a deadline would wait for ever") !=
        std::string::npos);
}
