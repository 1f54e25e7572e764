// Record sets on several CUDA devices: those of the stand-in, which the test's environment names.
#include <wye/records/distribute.hpp>

#include <cstdlib>
#include <string>
#include <vector>

#include "functions.hpp"
#include "set.hpp"
#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::check_report;
using test::function;
using test::poison;
using test::random_records;

TEST_CASE("each worker has its own of four devices", "[.][gpus]") {
  const bool processes = GENERATE(false, true);
  auto runtime = Runtime::open().value();
  const auto records = random_records(1000);
  const auto run = [&](RecordDevices devices) {
    std::vector<std::uint64_t> results(records.size(), poison);
    const auto report = distribute(runtime, function("which device"), records, results,
                                   {.devices = std::move(devices), .processes = processes, .batch = 10});
    REQUIRE(report);
    CHECK(report->done == records.size());
    return std::pair(*report, results);
  };
  for (int device = 0; device < 4; ++device) {
    const auto [report, results] = run({"cuda:" + std::to_string(device)});
    const auto expected = static_cast<std::uint64_t>(1000 * device + device + 1);
    CHECK(results == std::vector<std::uint64_t>(records.size(), expected));
  }
  const auto [report, results] = run({});
  REQUIRE(report.devices.size() == 4);
  CHECK(report.devices[3].name == "GPU 3");
  CHECK(report.text().starts_with("1,000 records on 4 GPUs: 1,000 done, 0 failed, 0 restarts, "));
  for (const std::uint64_t one : results) CHECK(one % 1000 == one / 1000 + 1);
  CHECK(run(2).first.devices.size() == 2);
}

TEST_CASE("a worker process whose CUDA is lost is replaced", "[.][gpus]") {
  auto runtime = Runtime::open().value();
  const auto records = random_records(200);
  std::vector<std::uint64_t> results(records.size(), poison);
  ::setenv("WYE_STANDIN_FAULTS", "cuLaunchKernel:4:700", 1);  // of each process
  const auto report = records::run_set(
      runtime, function("axpy"), records, results,
      {.devices = {"cuda:0", "cuda:1"}, .processes = true, .batch = 10, .attempts = 20},
      {.first_restart = 1ms, .longest_restart = 1ms, .most_ends = 1000, .most_failures = 1000});
  ::unsetenv("WYE_STANDIN_FAULTS");
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->done == records.size());
  CHECK(report->restarts() > 0);
}
