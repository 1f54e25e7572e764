// Record sets in threads and in processes.
#include <wye/records/distribute.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "functions.hpp"
#include "runs.hpp"
#include "support/catch.hpp"
#include "support/open_descriptors.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Act;
using test::ActRecord;
using test::check_report;
using test::function;
using test::poison;
using test::quick;
using test::random_records;
using test::run;

namespace {

/// Runs a set whose second device fails, until that is out and the other one has done some records.
RecordReport run_until_null_is_out(const std::string& name, bool processes) {
  auto records = random_records(100000);
  for (ActRecord& record : records) record.act = Act::work;
  std::stop_source source;
  const auto [results, report] = run(name, records,
                                     {.processes = processes,
                                      .batch = 10,
                                      .progress =
                                          [&](const RecordProgress& progress) {
                                            if (progress.devices[1].is_out && progress.done > 0)
                                              source.request_stop();
                                          },
                                      .stop = source.get_token()});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK((report->done > 0 && report->failed.empty()));
  return *report;
}

}  // namespace

TEST_CASE("results of threads and processes are those of a loop", "[records]") {
  const bool processes = GENERATE(false, true);
  const std::uint32_t workers = GENERATE(1u, 2u);
  for (const std::uint64_t count : test::edge_counts) {
    CAPTURE(processes, workers, count);
    const auto records = random_records(count);
    const auto [results, report] =
        run("mix", records, {.processes = processes, .workers_per_device = workers});
    REQUIRE(report);
    check_report(*report, records, results);
    CHECK((report->done == count && report->failed.empty() && report->restarts() == 0));
  }
}

TEST_CASE("a million records are done", "[records][large]") {
  const bool processes = GENERATE(false, true);
  const auto records = random_records(1'000'000);
  const auto [results, report] = run("mix", records, {.processes = processes, .workers_per_device = 2});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->done == 1'000'000);
}

TEST_CASE("batches of one record, and of all", "[records]") {
  const bool processes = GENERATE(false, true);
  const auto records = random_records(1000);
  for (const std::uint64_t batch : {1u, 1000u, 1'000'000u}) {
    const auto [results, report] = run("mix", records, {.processes = processes, .batch = batch});
    REQUIRE(report);
    check_report(*report, records, results);
    CHECK(report->done == 1000);
  }
}

TEST_CASE("each worker has its device alone, as number 0", "[records]") {
  const bool processes = GENERATE(false, true);
  const auto records = random_records(1000);
  const auto [results, report] =
      run("one device", records, {.processes = processes, .batch = 10, .workers_per_device = 2});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK((report->done == 1000 && report->restarts() == 0));
}

TEST_CASE("a worker on Vulkan has that device alone", "[records]") {
  const bool processes = GENERATE(false, true);
  auto runtime = Runtime::open({.pool = {.backends = {"vulkan", "cpu"}}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  const auto records = random_records(1000);
  std::vector<std::uint64_t> results(records.size(), poison);
  const auto report = distribute(runtime, function("one device"), records, results,
                                 {.devices = {"vulkan:0", "cpu:0"}, .processes = processes});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->done == 1000);
}

TEST_CASE("an error or exception fails its batch, and no other", "[records]") {
  const bool processes = GENERATE(false, true);
  auto records = random_records(2000);
  records[0].act = Act::fail;
  records[700].act = Act::throw_exception;
  records[1999].act = Act::throw_no_memory;
  const auto [results, report] =
      run("act", records, {.devices = {"cpu:0"}, .processes = processes, .batch = 100});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 3);
  CHECK((report->failed[0].first == 0 && report->failed[0].last == 99 && report->failed[0].attempts == 2));
  CHECK((report->failed[0].device == "cpu:0"));
  CHECK(report->failed[0].error.describe() ==
        "unavailable: CPU failed: The model is busy, attempt 2 of 2.\n  launch: LAUNCH_FAILED (719)");
  CHECK(report->failed[1].error.describe() ==
        "kernel_failed: CPU failed: Record function 'act' threw an exception: no model, attempt 2 of 2.");
  CHECK(report->failed[2].error == Errc::out_of_memory);
  CHECK(report->error_of(150) == nullptr);
  CHECK(report->error_of(799)->code() == Errc::kernel_failed);
  CHECK(report->text().starts_with("2,000 records on 1 CPU: 1,700 done, 300 failed, 0 restarts, "));
}

TEST_CASE("a failed record gets the result of failures", "[records]") {
  auto records = random_records(100);
  records[50].act = Act::fail;
  std::vector<std::uint64_t> results(100, poison);
  Runtime runtime = test::two_devices();
  const auto report = distribute(runtime, function("act"), records, RecordOutput(results, 77),
                                 {.devices = {"cpu:0"}, .batch = 10});
  REQUIRE(report);
  CHECK(report->failed_records() == 10);
  for (std::size_t r = 0; r < 100; ++r)
    CHECK(results[r] == (r / 10 == 5 ? 77 : test::mixed(records[r].value)));
}

TEST_CASE("the function of a thread is asked to stop after the timeout", "[records]") {
  auto records = random_records(300);
  records[150].act = Act::hang;
  const auto [results, report] =
      run("act with a state", records, {.devices = {"cpu:0"}, .batch = 10, .timeout = 2s});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK(report->failed[0].error == Errc::timed_out);
  CHECK(report->restarts() >= 1);
}

TEST_CASE("a device whose first function fails is taken out", "[records]") {
  const RecordReport report = run_until_null_is_out("init fails on null", GENERATE(false, true));
  REQUIRE(report.devices[1].out);
  CHECK(report.devices[1].out->describe() ==
        "not_found: GPU 1 failed: There is no model 'x'.\n  while preparing a worker of GPU 1");
  CHECK(report.text().ends_with("; 1 device failed"));
}

TEST_CASE("a first function that fails on each device is the error of the call", "[records]") {
  const bool processes = GENERATE(false, true);
  const auto failing = run("init fails", random_records(1000), {.processes = processes});
  REQUIRE_FALSE(failing.report);
  CHECK(failing.report.error() == Errc::not_found);
  CHECK(failing.results == std::vector<std::uint64_t>(1000, poison));
}

TEST_CASE("a device that fails three batches in a row is taken out", "[records]") {
  const RecordReport report = run_until_null_is_out("null fails", GENERATE(false, true));
  REQUIRE(report.devices[1].out);
  CHECK(report.devices[1].out->describe().starts_with("device_lost: 3 batches in a row failed"));
}

TEST_CASE("a set ends after its running batches when it is stopped", "[records]") {
  const bool processes = GENERATE(false, true);
  const bool by_deadline = GENERATE(false, true);
  const auto records = random_records(100000);
  std::stop_source source;
  RecordOptions options{.processes = processes, .batch = 1};
  if (by_deadline) {
    options.deadline = Deadline(Clock::steady().now());
  } else {
    options.stop = source.get_token();
    options.progress = [&](const RecordProgress& progress) {
      if (progress.done > 10) source.request_stop();
    };
  }
  const auto [results, report] = run("mix", records, options);
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK((report->not_run > 0 && report->failed.empty()));
  CHECK(report->text().find(" not run") != std::string::npos);
}

TEST_CASE("progress rises to the end, and has each device", "[records]") {
  const bool processes = GENERATE(false, true);
  const auto records = random_records(50000);
  std::uint64_t last = 0;
  int ends = 0;
  const auto [results, report] = run(
      "mix", records, {.processes = processes, .batch = 10, .progress = [&](const RecordProgress& progress) {
                         CHECK(progress.done >= last);
                         CHECK(progress.records == 50000);
                         REQUIRE(progress.devices.size() == 2);
                         CHECK(progress.devices[0].done + progress.devices[1].done == progress.done);
                         CHECK((progress.devices[0].name == "CPU" && progress.devices[1].name == "GPU 1"));
                         last = progress.done;
                         ends += progress.is_end ? 1 : 0;
                       }});
  REQUIRE(report);
  CHECK((last == 50000 && ends == 1));
}

TEST_CASE("a program that does not call worker_main is told so", "[records][no_tsan]") {
  const std::string how = GENERATE("exits", "hangs", "distributes");
  ::setenv("WYE_TEST_NO_WORKER_MAIN", how.c_str(), 1);
  auto pace = quick();
  pace.join_limit = how == "hangs" ? Duration(500ms) : Duration(60s);
  const auto [results, report] = run("mix", random_records(1000), {.processes = true}, pace);
  ::unsetenv("WYE_TEST_NO_WORKER_MAIN");
  REQUIRE_FALSE(report);
  CHECK(report.error() == Errc::unavailable);
  const std::string& sentence = report.error().sentence();
  CHECK(sentence.ends_with("Call wye::worker_main first in main."));
  if (how == "exits") CHECK(sentence.find("ended with exit status 5 before it called") != std::string::npos);
  if (how == "hangs") CHECK(sentence.find("did not call wye::worker_main within 0.5 s") != std::string::npos);
  if (how == "distributes") CHECK(sentence.find("exit status 6") != std::string::npos);
}

TEST_CASE("a function that is not in the list of worker_main is named", "[records]") {
  Runtime runtime = test::two_devices();
  const RecordFunction unknown("unknown", [](std::span<const ActRecord>, std::span<std::uint64_t>) {});
  const auto records = random_records(10);
  std::vector<std::uint64_t> results(10);
  const auto report =
      distribute(runtime, unknown, records, results, {.devices = {"cpu:0"}, .processes = true});
  REQUIRE_FALSE(report);
  CHECK(report.error() == Errc::not_found);
  CHECK(report.error().sentence().find(
            "Record function 'unknown' with records of 16 bytes and results of 8 bytes "
            "is not in the list of wye::worker_main ('mix', 'act'") != std::string::npos);
}

TEST_CASE("nothing of a set stays: no process, thread or descriptor", "[records][no_tsan]") {
  const int before = test::open_descriptors();
  auto records = random_records(2000);
  records[7].act = Act::segv;
  records[1500].act = Act::stop;
  for (const bool processes : {true, false})
    (void)run(processes ? "act" : "mix", records, {.processes = processes, .batch = 10, .timeout = 1s});
  CHECK(test::open_descriptors() == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("options of a set are checked", "[records]") {
  const auto refusal = [](RecordOptions options) {
    const auto [results, report] = run("mix", random_records(10), std::move(options));
    return report ? std::string("done") : report.error().describe();
  };
  CHECK(refusal({.devices = 0}) == "invalid_argument: RecordOptions::devices must be >= 1, got 0.");
  CHECK(refusal({.devices = 3}) ==
        "invalid_argument: RecordOptions::devices (3) exceeds the number of usable devices (1).");
  CHECK(refusal({.devices = {"cpu:0", "cpu:0"}}) ==
        "invalid_argument: RecordOptions::devices names 'cpu:0' twice.");
  CHECK(refusal({.devices = {"cuda:7"}}) ==
        "not_found: RecordOptions::devices names 'cuda:7', which is no usable device of the runtime (cpu:0, "
        "null:0).");
  CHECK(refusal({.batch = 0}) ==
        "invalid_argument: RecordOptions::batch (0) is not in the range 1 to 1000000.");
  CHECK(refusal({.batch = 1000001}) ==
        "invalid_argument: RecordOptions::batch (1000001) is not in the range 1 to 1000000.");
  CHECK(refusal({.workers_per_device = 17}) ==
        "invalid_argument: RecordOptions::workers_per_device (17) is not in the range 1 to 16.");
  CHECK(refusal({.attempts = 0}) ==
        "invalid_argument: RecordOptions::attempts (0) is not in the range 1 to 100.");
  CHECK(refusal({.timeout = 0s}) == "invalid_argument: RecordOptions::timeout (0 ns) must be more than 0.");
}

TEST_CASE("lengths and types of records are checked", "[records]") {
  Runtime runtime = test::two_devices();
  const auto records = random_records(10);
  std::vector<std::uint64_t> results(9);
  CHECK(distribute(runtime, function("mix"), records, results).error().describe() ==
        "invalid_argument: The number of results (9) differs from the number of records (10).");
  std::vector<float> floats(10);
  const std::string expected(wye::detail::record_type<std::uint64_t>().name);  // "unsigned long" for clang
  CHECK(distribute(runtime, function("mix"), records, floats).error().describe() ==
        "invalid_argument: Record function 'mix' takes results of type '" + expected +
            "' (8 bytes), got 'float' (4 bytes).");
}
