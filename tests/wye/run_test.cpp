// `wye run`: workloads on each device, with their checks.
#include "wye/run.hpp"

#include <cstdlib>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using wye_tool::workloads;

namespace {

/// A cache directory that the program finds.
struct OwnCache {
  OwnCache() { ::setenv("WYE_CACHE_DIR", (folder / "cache").c_str(), 1); }
  OwnCache(const OwnCache&) = delete;
  ~OwnCache() { ::unsetenv("WYE_CACHE_DIR"); }
  TemporaryFolder folder;
};

}  // namespace

TEST_CASE("each workload is right on each device, for odd sizes and one element", "[run]") {
  const OwnCache cache;
  const std::size_t devices = wye::Runtime::open()->devices().size();
  for (const wye_tool::Workload& one : workloads())
    for (const std::uint64_t size : {1u, 33u, 257u}) {
      const auto report = wye_tool::run({.workload = std::string(one.name), .size = size, .repeat = 2});
      REQUIRE(report);
      CHECK(report->devices.size() == devices);
      for (const wye_tool::DeviceRun& run : report->devices) {
        CAPTURE(one.name, size, run.device, run.error, run.failure.value_or(""));
        CHECK(run.is_right());
        CHECK(run.last.run > wye::Duration::zero());
      }
      CHECK_FALSE(report->reason.empty());
    }
}

TEST_CASE("results that no device has written are wrong", "[run]") {
  auto runtime = wye::Runtime::open({.pool = {.backends = {"cpu"}}}).value();
  for (const wye_tool::Workload& one : workloads()) {
    CAPTURE(one.name);
    const wye_tool::Trial trial = one.make(100);
    CHECK(trial.error() > 1);
    REQUIRE(runtime.run(trial.job()));
    CHECK(trial.error() <= 1);
    (void)trial.job();  // results of another run do not count
    if (one.name == "axpy" || one.name == "softmax" || one.name == "normalize") continue;  // in place
    CHECK(trial.error() > 1);
  }
}

TEST_CASE("workloads, sizes, devices and numbers of runs are checked", "[run]") {
  const OwnCache cache;
  const auto refusal = [](wye_tool::RunOptions options) { return wye_tool::run(options).error().describe(); };
  CHECK(refusal({.workload = "paint"}) ==
        "invalid_argument: There is no workload 'paint' (axpy, dot, matmul, normalize, reduce, scan, "
        "softmax, sort, "
        "transpose).");
  CHECK(refusal({.workload = "matmul", .size = 4097}) ==
        "invalid_argument: The size (4097) is not in the range 1 to 4096 (rows and columns).");
  CHECK(refusal({.workload = "matmul", .size = 0}).find("The size (0)") != std::string::npos);
  CHECK(refusal({.workload = "axpy", .repeat = 0}) ==
        "invalid_argument: The number of runs (0) is not in the range 1 to 1000.");
  CHECK(refusal({.workload = "axpy", .size = 10, .device = "abacus:0"})
            .find("Device 'abacus:0' is no usable device "
                  "(") != std::string::npos);
}
