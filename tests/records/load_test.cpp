// Functions that load items beside the work.
#include <wye/records/distribute.hpp>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "functions.hpp"
#include "set.hpp"
#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Act;
using test::ActRecord;
using test::check_report;
using test::function;
using test::poison;
using test::random_records;

TEST_CASE("loaded items are those of their records", "[records][load]") {
  const bool processes = GENERATE(false, true);
  const std::uint32_t io_workers = GENERATE(0u, 1u, 4u);
  Runtime runtime = test::two_devices();
  for (const std::uint64_t count : {1u, 127u, 128u, 129u, 5000u}) {
    const auto records = random_records(count);
    std::vector<std::uint64_t> results(count, poison);
    const auto report =
        distribute(runtime, function("load"), records, results,
                   {.devices = {"cpu:0", "null:0"}, .processes = processes, .io_workers = io_workers});
    REQUIRE(report);
    check_report(*report, records, results);
    CHECK(report->done == count);
  }
}

TEST_CASE("an item that cannot be loaded fails its batch, and no other", "[records][load]") {
  const bool processes = GENERATE(false, true);
  auto records = random_records(1000);
  records[150].act = Act::fail;
  records[770].act = Act::throw_exception;
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(1000, poison);
  const auto report = distribute(runtime, function("load"), records, results,
                                 {.devices = {"cpu:0"}, .processes = processes, .batch = 10});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 2);
  CHECK(report->failed[0].error.describe() ==
        "unavailable: CPU failed: The model is busy, attempt 2 of 2.\n  launch: LAUNCH_FAILED (719)");
  CHECK(report->failed[1].error.describe() ==
        "kernel_failed: CPU failed: The function that loads items of 'load' threw an exception: no model, "
        "attempt 2 "
        "of 2.");
}

TEST_CASE("the record whose loading ends its process is found", "[records][load][no_tsan]") {
  auto records = random_records(1000);
  records[333].act = Act::segv;
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(1000, poison);
  const auto report = records::run_set(runtime, function("load"), records, results,
                                       {.devices = {"cpu:0", "null:0"}, .processes = true, .batch = 32},
                                       {.first_restart = 1ms, .longest_restart = 2ms, .most_ends = 1000});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first == 333 && report->failed[0].last == 333));
}

TEST_CASE("a batch is loaded while the one before it runs", "[records][load]") {
  std::atomic<int> running{0}, loaded_beside{0};
  struct State {
    int unused = 0;
  };
  const RecordFunction beside(
      "beside", [](RecordWorker&) { return State{}; },
      [&](const State&, const int& record) {
        if (running != 0) ++loaded_beside;
        return std::make_unique<int>(record);
      },
      [&](State&, std::span<std::unique_ptr<int>> items, std::span<int> out) {
        ++running;
        for (std::size_t i = 0; i < items.size(); ++i) out[i] = 2 * *items[i];
        volatile std::uint64_t value = 1;
        for (int i = 0; i < 200000; ++i) value = test::mixed(value);
        --running;
      });
  std::vector<int> records(400), results(400);
  for (std::size_t r = 0; r < 400; ++r) records[r] = static_cast<int>(r);
  Runtime runtime = test::two_devices();
  const auto report = distribute(runtime, beside, records, results, {.devices = {"cpu:0"}, .batch = 20});
  REQUIRE(report);
  CHECK((report->done == 400 && results[399] == 798));
  CHECK(loaded_beside > 0);
}

TEST_CASE("the number of threads that load is checked", "[records][load]") {
  Runtime runtime = test::two_devices();
  const auto records = random_records(10);
  std::vector<std::uint64_t> results(10);
  CHECK(distribute(runtime, function("load"), records, results, {.devices = {"cpu:0"}, .io_workers = 65})
            .error()
            .describe() == "invalid_argument: RecordOptions::io_workers (65) is not in the range 0 to 64.");
}
