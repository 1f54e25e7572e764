// Sets that continue after the end of the application.
#include <wye/records/distribute.hpp>

#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "functions.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace wye;
using test::Act;
using test::ActRecord;
using test::check_report;
using test::function;
using test::poison;
using test::random_records;

namespace {

using Results = RecordFile<std::uint64_t>;

RecordOptions with_journal(const std::string& path, bool processes = false) {
  return {.devices = {"cpu:0", "null:0"}, .processes = processes, .batch = 16, .journal = path};
}
std::uint64_t sum_of(const std::vector<std::uint64_t>& values) {
  std::uint64_t sum = 0;
  for (const std::uint64_t value : values) sum = test::mixed(sum + value);
  return sum;
}

/// Stops a set once it has done some records.
class StopAfter {
 public:
  explicit StopAfter(RecordOptions& options, std::uint64_t records) {
    options.stop = source_.get_token();
    options.progress = [this, records](const RecordProgress& progress) {
      if (progress.done >= records) source_.request_stop();
    };
  }

 private:
  std::stop_source source_;
};

}  // namespace

TEST_CASE("a set continues where an earlier call has ended", "[records][journal]") {
  const TemporaryFolder folder;
  const bool processes = GENERATE(false, true);
  const bool to_file = GENERATE(false, true);
  auto records = random_records(20000);
  for (ActRecord& record : records) record.act = Act::work;
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(records.size(), poison);
  const auto output = [&]() -> RecordOutput {
    if (to_file) return Results{folder / "results"};
    return results;
  };
  auto options = with_journal(folder / "journal", processes);
  std::uint64_t before = 0;
  for (int call = 0; call < 3; ++call) {
    RecordOptions stopped = options;
    const StopAfter stop(stopped, before + 2000);
    if (!to_file) results.assign(records.size(), poison);  // as in a new process
    const auto report = distribute(runtime, function("act"), records, output(), stopped);
    REQUIRE(report);
    CHECK(report->resumed == before);
    CHECK(report->done + report->not_run == records.size());
    before = report->done;
  }
  if (!to_file) results.assign(records.size(), poison);
  const auto report = distribute(runtime, function("act"), records, output(), options);
  REQUIRE(report);
  CHECK((report->resumed == before && report->done == records.size()));
  CHECK(report->text().find(" done (") != std::string::npos);
  if (to_file) {
    std::ifstream file(folder / "results", std::ios::binary);
    file.read(reinterpret_cast<char*>(results.data()), static_cast<std::streamsize>(8 * results.size()));
    REQUIRE(file);
  }
  std::uint64_t wrong = 0;
  for (std::size_t r = 0; r < records.size(); ++r)
    wrong += results[r] != test::mixed(records[r].value) ? 1u : 0u;
  CHECK(wrong == 0);
  // All is done: nothing runs.
  if (!to_file) results.assign(records.size(), poison);
  const auto again = distribute(runtime, function("act"), records, output(), options);
  REQUIRE(again);
  CHECK((again->resumed == records.size() && again->done == records.size()));
  if (!to_file) CHECK(results[19999] == test::mixed(records[19999].value));
}

TEST_CASE("records that failed run again", "[records][journal]") {
  const TemporaryFolder folder;
  auto records = random_records(160);
  records[50].act = Act::fail;
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(160, poison);
  const auto options = with_journal(folder / "journal");
  for (int call = 0; call < 2; ++call) {
    const auto report = distribute(runtime, function("act"), records, results, options);
    REQUIRE(report);
    CHECK((report->done == 144 && report->failed_records() == 16 &&
           report->resumed == (call == 0 ? 0u : 144u)));
  }
}

TEST_CASE("results in a file that have changed are computed again", "[records][journal]") {
  const TemporaryFolder folder;
  const auto records = random_records(1600);
  Runtime runtime = test::two_devices();
  const auto options = with_journal(folder / "journal");
  const std::string path = folder / "results";
  REQUIRE(distribute(runtime, function("mix"), records, Results{path}, options));
  const std::string before = folder.get("results");
  std::string changed = before;
  changed[8 * 100] = static_cast<char>(changed[8 * 100] ^ 1);
  folder.put("results", changed);
  const auto report = distribute(runtime, function("mix"), records, Results{path}, options);
  REQUIRE(report);
  CHECK((report->resumed == 1584 && report->done == 1600));
  CHECK(folder.get("results") == before);
}

TEST_CASE("a function gets all results in order, also those of earlier calls", "[records][journal]") {
  const TemporaryFolder folder;
  auto records = random_records(5000);
  for (ActRecord& record : records) record.act = Act::work;
  Runtime runtime = test::two_devices();
  const auto run = [&](std::size_t stop_after) {
    std::vector<std::uint64_t> taken;
    std::stop_source source;
    RecordOptions options = with_journal(folder / "journal");
    options.stop = source.get_token();
    const auto report = distribute(runtime, function("act"), records,
                                   RecordOutput::taken_by<std::uint64_t>(
                                       [&](std::uint64_t first, std::span<const std::uint64_t> results) {
                                         CHECK(first == taken.size());
                                         taken.insert(taken.end(), results.begin(), results.end());
                                         if (taken.size() >= stop_after) source.request_stop();
                                       }),
                                   options);
    REQUIRE(report);
    CHECK(taken.size() >= report->resumed);
    return taken;
  };
  CHECK(run(1000).size() < 5000);
  const auto all = run(5000);
  REQUIRE(all.size() == 5000);
  for (std::size_t r = 0; r < 5000; ++r) REQUIRE(all[r] == test::mixed(records[r].value));
}

TEST_CASE("the journal of another set is refused", "[records][journal]") {
  const TemporaryFolder folder;
  auto records = random_records(160);
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(160, poison);
  const auto options = with_journal(folder / "journal");
  REQUIRE(distribute(runtime, function("mix"), records, results, options));
  const auto refusal = [&](const std::string& name, RecordOptions other) {
    const auto report = distribute(runtime, function(name), records, results, other);
    REQUIRE_FALSE(report);
    CHECK(report.error() == Errc::invalid_argument);
    return report.error().sentence();
  };
  CHECK(refusal("act", options).find("belongs to another work (function 'mix', batches of 16, 160 records") !=
        std::string::npos);
  RecordOptions larger = options;
  larger.batch = 17;
  CHECK(refusal("mix", larger).find("not to this one (function 'mix', batches of 17") != std::string::npos);
  records[3].value += 1;
  CHECK(refusal("mix", options).find("in memory (") != std::string::npos);
}

TEST_CASE("a journal that cannot be written or is damaged is refused before the set begins",
          "[records][journal]") {
  const TemporaryFolder folder;
  const auto records = random_records(160);
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(160, poison);
  const auto refused = [&](const std::string& path) {
    const auto report = distribute(runtime, function("mix"), records, results, with_journal(path));
    REQUIRE_FALSE(report);
    return report.error().describe();
  };
  CHECK(refused("/nowhere/journal").starts_with("io: "));
  CHECK(refused(folder.put("text", "some text of an application, which is no journal"))
            .starts_with("corrupt: File '" + (folder / "text") + "' is damaged at byte 0."));
  CHECK(results == std::vector<std::uint64_t>(160, poison));
}

// Runs a set with a journal, in a process that the test kills.
TEST_CASE("journal: runs a set in folder WYE_TEST_FOLDER", "[.][spawned]") {
  const std::string folder = std::getenv("WYE_TEST_FOLDER");
  auto records = random_records(8000);
  for (ActRecord& record : records) record.act = Act::work;
  Runtime runtime = test::two_devices();
  const auto options = with_journal(folder + "/journal", true);
  const auto report = distribute(runtime, function("act"), records, Results{folder + "/results"}, options);
  ::_exit(report && report->done == records.size() ? 0 : 1);
}

TEST_CASE("a program that is killed again and again ends with the same results",
          "[records][journal][large]") {
  const TemporaryFolder folder;
  ::setenv("WYE_TEST_FOLDER", folder.path().c_str(), 1);
  std::mt19937 random(11);
  const auto journal_bytes = [&] {
    struct stat status {};
    return ::stat((folder / "journal").c_str(), &status) == 0 ? status.st_size : 0;
  };
  int kills = 0;
  for (bool has_ended = false; !has_ended;) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/proc/self/exe", "/proc/self/exe", "journal: runs a set in folder WYE_TEST_FOLDER",
              static_cast<char*>(nullptr));
      ::_exit(127);
    }
    REQUIRE(child > 0);
    // Killed once the journal has grown by some bytes, in the midst of an entry or between two.
    const auto enough = journal_bytes() + static_cast<off_t>(random() % 600);
    int status = 0;
    pid_t ended = 0;
    while ((ended = ::waitpid(child, &status, WNOHANG)) == 0 && (kills >= 100 || journal_bytes() <= enough))
      ::sched_yield();
    if (ended == 0) {
      ::kill(child, SIGKILL);
      ++kills;
      REQUIRE(::waitpid(child, &status, 0) == child);
    }
    REQUIRE((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
    has_ended = WIFEXITED(status);
  }
  ::unsetenv("WYE_TEST_FOLDER");
  const auto records = random_records(8000);
  std::vector<std::uint64_t> results(8000), expected;
  std::ifstream file(folder / "results", std::ios::binary);
  REQUIRE(file.read(reinterpret_cast<char*>(results.data()), 64000));
  for (const ActRecord& record : records) expected.push_back(test::mixed(record.value));
  CHECK(sum_of(results) == sum_of(expected));
  CHECK(kills >= 10);
}
