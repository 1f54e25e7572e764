// Ends of worker processes.
#include <wye/kernel/kernel.hpp>
#include <wye/records/distribute.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "functions.hpp"
#include "runs.hpp"
#include "support/catch.hpp"
#include "support/sanitizers.hpp"
#include "support/skip.hpp"

using namespace wye;
using namespace std::chrono_literals;
using test::Act;
using test::ActRecord;
using test::check_report;
using test::poison;
using test::quick;
using test::random_records;
using test::run;

TEST_CASE("the record that ends its process is found, and all others are done", "[records][no_tsan]") {
  const std::tuple<Act, std::string> end = GENERATE(table<Act, std::string>({
      {Act::segv, "killed by signal 11 (SIGSEGV)"},
      {Act::kill, "killed by signal 9 (SIGKILL)"},
      {Act::exit_3, "ended with exit status 3"},
      {Act::exit_0, "ended with exit status 0"},
  }));
  const std::uint64_t bad = GENERATE(0u, 63u, 1000u, 1999u);
  const auto& [act, reason] = end;
  CAPTURE(reason, bad);
  auto records = random_records(2000);
  records[bad].act = act;
  const auto [results, report] = run("act", records, {.processes = true});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  const RecordFailure& failure = report->failed[0];
  CHECK((failure.first == bad && failure.last == bad && failure.attempts == 2));
  CHECK(failure.error.describe().find(" failed: " + reason + ", attempt 2 of 2.") != std::string::npos);
  CHECK(report->restarts() >= 6);  // none for the last ends, if another worker is left
}

TEST_CASE("one bad record of a batch of 128 costs nine restarts", "[records][no_tsan]") {
  auto records = random_records(2000);
  records[700].act = Act::segv;
  const auto [results, report] = run("act", records, {.devices = {"cpu:0"}, .processes = true});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->restarts() == 9);
  CHECK(report->text().starts_with("2,000 records on 1 CPU: 1,999 done, 1 failed, 9 restarts, "));
}

TEST_CASE("the error of a process that ended has the end of its output", "[records][no_tsan]") {
  auto records = random_records(4);
  records[2].act = Act::write_text;
  const auto [results, report] = run("act", records, {.devices = {"cpu:0"}, .processes = true});
  REQUIRE(report);
  REQUIRE(report->failed.size() == 1);
  CHECK(report->failed[0].error.describe() ==
        "kernel_failed: CPU failed: killed by signal 6 (SIGABRT), attempt 2 of 2.\n"
        "  the standard error of the worker ended with: the model is broken\n");
}

TEST_CASE("a process that destroys the shared memory is killed, and its record found", "[records][no_tsan]") {
  auto records = random_records(300);
  records[150].act = Act::write_garbage;
  const auto [results, report] = run("act", records, {.devices = {"cpu:0"}, .processes = true, .batch = 16});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first == 150 && report->failed[0].last == 150));
  CHECK(report->failed[0].error.describe() ==
        "corrupt: CPU failed: its worker wrote to memory of wye that it shares, attempt 2 of 2.");
}

TEST_CASE("a process that stops or hangs is killed after the timeout", "[records][no_tsan]") {
  auto records = random_records(300);
  records[150].act = GENERATE(Act::stop, Act::hang);
  const auto [results, report] = run("act", records, {.processes = true, .batch = 10, .timeout = 1s});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first == 150 && report->failed[0].last == 159));
  CHECK(report->failed[0].error.describe().find(
            " failed: a batch exceeds the timeout (1.0 s), attempt 2 of 2.") != std::string::npos);
}

TEST_CASE("a worker that ends or hangs before its first batch is the error of the call",
          "[records][no_tsan]") {
  const std::string place = GENERATE("WYE_TEST_BEFORE_JOINING", "WYE_TEST_INIT");
  const auto& [act, reason] = GENERATE(table<Act, std::string>({
      {Act::segv, "killed by signal 11 (SIGSEGV)"},
      {Act::kill, "killed by signal 9 (SIGKILL)"},
      {Act::exit_3, "ended with exit status 3"},
      {Act::exit_0, "ended with exit status 0"},
      {Act::write_text, "killed by signal 6 (SIGABRT)"},
      {Act::stop, ""},
      {Act::hang, ""},
  }));
  const bool is_joined = place == "WYE_TEST_INIT";
  const bool hangs = reason.empty();
  CAPTURE(place, reason);
  auto pace = quick();
  pace.most_ends = 5;
  if (hangs) pace.join_limit = is_joined ? Duration(60s) : Duration(200ms);
  ::setenv(place.c_str(), std::to_string(static_cast<int>(act)).c_str(), 1);
  const auto [results, report] =
      run("init acts", random_records(100), {.processes = true, .timeout = hangs ? 200ms : 60s}, pace);
  ::unsetenv(place.c_str());
  REQUIRE_FALSE(report);
  const std::string error = report.error().describe();
  CAPTURE(error);
  if (hangs && is_joined) CHECK(report.error() == Errc::timed_out);
  if (hangs && !is_joined) CHECK(error.find("did not call wye::worker_main within 0.2 s") != error.npos);
  if (!hangs && is_joined) CHECK(error.find("5 workers ended within 60.0 s, the last with: ") != error.npos);
  if (!hangs) CHECK(error.find(reason) != error.npos);
  CHECK(results == std::vector<std::uint64_t>(100, poison));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // nothing stays
}

TEST_CASE("if each device is out, the rest has failed", "[records][no_tsan]") {
  auto records = random_records(5000);
  for (std::size_t r = 1000; r < 5000; ++r) records[r].act = Act::segv;
  auto pace = quick();
  pace.most_ends = 5;
  pace.most_halvings = 4;
  const auto [results, report] = run("act", records, {.processes = true, .batch = 10}, pace);
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK((report->devices[0].out && report->devices[1].out));
  CHECK(report->failed.back().error.sentence().starts_with("No device is left: 5 workers ended within"));
}

TEST_CASE("with many bad records, each record is done or failed", "[records][large]") {
  std::mt19937_64 random(7);
  auto records = random_records(3000);
  std::uint64_t bad = 0;
  for (ActRecord& record : records)
    if (random() % 100 == 0) record.act = Act::segv, ++bad;
  const auto [results, report] =
      run("act", records, {.processes = true, .batch = 32, .workers_per_device = 2});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->failed_records() >= bad);
  for (std::size_t r = 0; r < records.size(); ++r)
    if (records[r].act == Act::segv) CHECK(report->error_of(r));
}

TEST_CASE("after ten thousand ends of workers each record is done or failed", "[.][proof]") {
  auto records = random_records(10000);
  for (std::size_t r = 0; r < records.size(); r += 2) records[r].act = Act::exit_0;
  auto pace = quick();
  pace.most_ends = 1'000'000;
  const auto [results, report] =
      run("act", records, {.processes = true, .batch = 1, .workers_per_device = 2}, pace);
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(report->failed_records() == 5000);
  CHECK(report->restarts() >= 10000 - 4);
}

TEST_CASE("idle and busy workers that are killed or stopped are replaced", "[records][large]") {
  const int signal = GENERATE(SIGKILL, SIGSEGV, SIGTERM, SIGSTOP);
  CAPTURE(signal);
  auto records = random_records(200);
  records[100].act = Act::hang;
  bool has_killed = false;
  const auto kill_all = [&](const RecordProgress& progress) {
    if (std::exchange(has_killed, has_killed || progress.done == 190) || progress.done != 190) return;
    std::ifstream children("/proc/self/task/" + std::to_string(::gettid()) + "/children");
    for (int number = 0; children >> number;) ::kill(number, signal);
  };
  const auto [results, report] =
      run("act", records, {.processes = true, .batch = 10, .timeout = 2s, .progress = kill_all});
  REQUIRE(report);
  check_report(*report, records, results);
  CHECK(has_killed);
  CHECK(report->restarts() >= 1);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first <= 100 && report->failed[0].last >= 100));
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a process beyond its memory limit fails its batch", "[records][no_tsan]") {
  if (test::under_asan) return test::skip("a sanitizer needs more memory than the limit");
  auto records = random_records(300);
  records[150].act = Act::need_memory;
  const auto [results, report] = run("act", records, {.devices = {"cpu:0"}, .processes = true, .batch = 10});
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first == 150 && report->failed[0].last == 159));
  CHECK(report->failed[0].error == Errc::out_of_memory);
}

TEST_CASE("a process with a kernel that does not end is killed after the timeout", "[records][large]") {
  if (!WYE_WITH_GLSL) return test::skip("this build compiles no GLSL");
  Runtime runtime = Runtime::open({.pool = {.backends = {"vulkan"}}}).value();
  if (!test::has_device(runtime, "vulkan")) return;
  auto records = random_records(100);
  records[50].act = Act::hang;
  std::vector<std::uint64_t> results(100, poison);
  const auto report =
      records::run_set(runtime, test::function("kernel"), records, results,
                       {.devices = {"vulkan:0"}, .processes = true, .batch = 10, .timeout = 5s}, quick());
  REQUIRE(report);
  check_report(*report, records, results);
  REQUIRE(report->failed.size() == 1);
  CHECK((report->failed[0].first == 50 && report->failed[0].last == 59));
  CHECK(report->failed[0].error.describe().find("a batch exceeds the timeout (5.0 s), attempt 2 of 2.") !=
        std::string::npos);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}
