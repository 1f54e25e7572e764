// Records from files and functions, results to files.
#include <wye/records/distribute.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
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

using Inputs = RecordFile<ActRecord>;
using Results = RecordFile<std::uint64_t>;

template <class T>
void write_values(const std::string& path, const std::vector<T>& values) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(T)));
}
template <class T>
std::vector<T> read_values(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}

/// Copies of `records`, made by a function that calls `count` with the number of each batch.
template <class Count>
RecordInput made_of(const std::vector<ActRecord>& records, Count count) {
  return RecordInput::made_by<ActRecord>(
      records.size(), [&records, count](std::uint64_t first, std::span<ActRecord> to) {
        std::copy_n(records.begin() + static_cast<std::ptrdiff_t>(first), to.size(), to.begin());
        count(to.size());
      });
}

RecordOptions options(bool processes) { return {.devices = {"cpu:0", "null:0"}, .processes = processes}; }

}  // namespace

TEST_CASE("results of files are those of a loop", "[records]") {
  const TemporaryFolder folder;
  const std::string in = folder / "in", out = folder / "out";
  const bool processes = GENERATE(false, true);
  Runtime runtime = test::two_devices();
  for (const std::uint64_t count : test::edge_counts) {
    CAPTURE(processes, count);
    const auto records = random_records(count);
    write_values(in, records);
    write_values(out, std::vector<std::uint64_t>(7000, poison));  // of an earlier run: it becomes shorter
    const auto report = distribute(runtime, function("mix"), Inputs{in}, Results{out}, options(processes));
    REQUIRE(report);
    const auto results = read_values<std::uint64_t>(out);
    REQUIRE(results.size() == count);
    check_report(*report, records, results);
    CHECK(report->done == count);
  }
}

TEST_CASE("a new file of results has zeros or the given value for records that fail", "[records]") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  auto records = random_records(300);
  records[150].act = Act::fail;
  Runtime runtime = test::two_devices();
  const std::uint64_t failed = GENERATE(0u, 77u);
  RecordOptions few = options(false);
  few.batch = 10;
  const auto report =
      failed == 0 ? distribute(runtime, function("act"), records, Results{out}, few)
                  : distribute(runtime, function("act"), records, RecordOutput(Results{out}, failed), few);
  REQUIRE(report);
  CHECK(report->failed_records() == 10);
  const auto results = read_values<std::uint64_t>(out);
  REQUIRE(results.size() == 300);
  for (std::size_t r = 0; r < 300; ++r)
    CHECK(results[r] == (r / 10 == 15 ? failed : test::mixed(records[r].value)));
  struct stat status {};
  REQUIRE(::stat(out.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
}

TEST_CASE("a function makes the records of each batch", "[records]") {
  const bool processes = GENERATE(false, true);
  Runtime runtime = test::two_devices();
  for (const std::uint64_t count : test::edge_counts) {
    CAPTURE(processes, count);
    const auto records = random_records(count);
    std::vector<std::uint64_t> results(count, poison);
    std::atomic<std::uint64_t> made{0};
    const auto report =
        distribute(runtime, function("mix"), made_of(records, [&](std::size_t more) { made += more; }),
                   results, options(processes));
    REQUIRE(report);
    check_report(*report, records, results);
    CHECK((report->done == count && made >= count));
  }
}

TEST_CASE("a million records of a file and of a function are done", "[records][large]") {
  const bool processes = GENERATE(false, true);
  const TemporaryFolder folder;
  const std::string in = folder / "in", out = folder / "out";
  Runtime runtime = test::two_devices();
  const auto records = random_records(1'000'000);
  write_values(in, records);
  const auto of_file = distribute(runtime, function("mix"), Inputs{in}, Results{out}, options(processes));
  REQUIRE(of_file);
  check_report(*of_file, records, read_values<std::uint64_t>(out));
  std::vector<std::uint64_t> results(records.size(), poison);
  const auto of_function =
      distribute(runtime, function("mix"), made_of(records, [](std::size_t) {}), results, options(processes));
  REQUIRE(of_function);
  check_report(*of_function, records, results);
  CHECK((of_file->done == 1'000'000 && of_function->done == 1'000'000));
}

TEST_CASE("records that cannot be made have failed, and no others", "[records]") {
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(1000, poison);
  RecordOptions few = options(GENERATE(false, true));
  few.batch = 10;
  const auto report = distribute(
      runtime, function("mix"),
      RecordInput::made_by<ActRecord>(1000,
                                      [](std::uint64_t first, std::span<ActRecord>) -> Result<void> {
                                        if (first == 100)
                                          return Error(Errc::corrupt, "The archive is damaged.");
                                        if (first == 500) throw std::runtime_error("no archive");
                                        return {};
                                      }),
      results, few);
  REQUIRE(report);
  CHECK(report->done == 980);
  REQUIRE(report->failed.size() == 2);
  CHECK(report->failed[0].error.describe() == "corrupt: The archive is damaged.\n  while reading records");
  CHECK(report->failed[1].error.describe() ==
        "kernel_failed: The function that makes records threw an exception: no archive\n  while reading "
        "records");
  CHECK((results[100] == poison && results[99] == test::mixed(0)));
}

TEST_CASE("files of records are checked", "[records]") {
  const TemporaryFolder folder;
  const std::string in = folder / "in", out = folder / "out";
  Runtime runtime = test::two_devices();
  const auto refusal = [&](RecordInput from, RecordOutput to) {
    const auto report = distribute(runtime, function("mix"), std::move(from), std::move(to), options(false));
    return report ? std::string("done") : report.error().describe();
  };
  CHECK(refusal(Inputs{in}, Results{out}) ==
        "not_found: File '" + in + "' cannot be read: No such file or directory.\n  open: 2");
  std::ofstream(in) << "seventeen bytes..";
  CHECK(refusal(Inputs{in}, Results{out}) ==
        "invalid_argument: File '" + in +
            "' ends with a cut record: its length (17 bytes) is no multiple of 16 "
            "bytes.");
  CHECK(refusal(Inputs{folder.path().string()}, Results{out}) ==
        "io: File '" + folder.path().string() + "' is no regular file.");
  const auto records = random_records(10);
  write_values(in, records);
  CHECK(refusal(Inputs{in}, Results{in}) ==
        "invalid_argument: File '" + in + "' has the records: the results need another file.");
  CHECK(read_values<std::uint64_t>(in).size() == 20);  // as before
  CHECK(refusal(Inputs{in}, Results{"/nowhere/out"})
            .starts_with("not_found: File '/nowhere/out' cannot be written: "));
  CHECK(refusal(RecordFile<float>{in}, Results{out})
            .starts_with("invalid_argument: Record function 'mix' takes records"));
  CHECK(::access(out.c_str(), F_OK) != 0);
}

TEST_CASE("a file of results beyond the limit of the process is refused", "[records]") {
  const TemporaryFolder folder;
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small{8000, before.rlim_max};
  Runtime runtime = test::two_devices();
  const auto records = random_records(1001);
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto report = distribute(runtime, function("mix"), records, Results{folder / "out"}, options(false));
  ::setrlimit(RLIMIT_FSIZE, &before);
  REQUIRE_FALSE(report);
  CHECK(report.error().sentence().ends_with("of 8008 bytes exceeds the limit of this process (8000 bytes)."));
}

TEST_CASE("a file of records that becomes shorter fails its later batches", "[records]") {
  const TemporaryFolder folder;
  const std::string in = folder / "in";
  write_values(in, random_records(100000));
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(100000, poison);
  RecordOptions shrinking = options(false);
  shrinking.progress = [&](const RecordProgress&) { REQUIRE(::truncate(in.c_str(), 16) == 0); };
  const auto report = distribute(runtime, function("mix"), Inputs{in}, results, shrinking);
  REQUIRE(report);
  CHECK(report->done + report->failed_records() == 100000);
  for (const RecordFailure& failure : report->failed)
    CHECK(failure.error.sentence().ends_with("has become shorter than 1600000 bytes."));
}

TEST_CASE("lines of a file are records", "[records]") {
  const TemporaryFolder folder;
  std::mt19937_64 random(3);
  Runtime runtime = test::two_devices();
  for (const std::size_t count : {0u, 1u, 127u, 128u, 129u, 5000u})
    for (const bool ends_with_newline : {false, true}) {
      CAPTURE(count, ends_with_newline);
      std::string text;
      std::vector<std::uint64_t> expected;
      for (std::size_t line = 0; line < count; ++line) {
        std::string content(random() % 61, '\0');
        for (char& c : content) c = static_cast<char>(random() % 5 == 0 ? '\0' : 'a' + random() % 26);
        if (!ends_with_newline && line + 1 == count && content.empty()) content = "x";  // otherwise no line
        std::uint64_t value = content.size();
        for (const char c : content) value = test::mixed(value + static_cast<unsigned char>(c));
        expected.push_back(value);
        text += content;
        if (ends_with_newline || line + 1 != count) text += '\n';
      }
      std::vector<std::uint64_t> results(count, poison);
      RecordOptions odd = options(false);
      odd.batch = 77;
      const auto report = distribute(runtime, function("count letters"),
                                     RecordLines<60>{folder.put("lines", text)}, results, odd);
      REQUIRE(report);
      CHECK(report->done == count);
      CHECK(results == expected);
    }
}

TEST_CASE("a line beyond the limit is refused with its number", "[records]") {
  const TemporaryFolder folder;
  Runtime runtime = test::two_devices();
  const std::string path = folder.put("lines", "short\n" + std::string(61, 'x') + "\nshort\n");
  std::vector<std::uint64_t> results(3);
  CHECK(distribute(runtime, function("count letters"), RecordLines<60>{path}, results, options(false))
            .error()
            .describe() == "invalid_argument: Line 2 of file '" + path +
                               "' has 61 bytes, more than the limit of its records (60).");
}

TEST_CASE("a function gets the results in order", "[records]") {
  const bool processes = GENERATE(false, true);
  const bool has_value = GENERATE(false, true);
  auto records = random_records(3000);
  for (const std::size_t bad : {0u, 777u, 2999u}) records[bad].act = Act::fail;
  Runtime runtime = test::two_devices();
  std::vector<std::uint64_t> results(3000, poison);
  std::uint64_t next = 0;
  const auto take = [&](std::uint64_t first, std::span<const std::uint64_t> taken) {
    CHECK(first >= next);
    std::ranges::copy(taken, results.begin() + static_cast<std::ptrdiff_t>(first));
    next = first + taken.size();
  };
  RecordOptions few = options(processes);
  few.batch = 7;
  few.workers_per_device = 2;
  const auto report = distribute(runtime, function("act"), records,
                                 has_value ? RecordOutput::taken_by<std::uint64_t>(take, std::uint64_t{5})
                                           : RecordOutput::taken_by<std::uint64_t>(take),
                                 few);
  REQUIRE(report);
  CHECK((report->failed_records() == 3 * 7 || report->failed_records() == 2 * 7 + 4));
  CHECK(report->done + report->failed_records() == 3000);
  std::uint64_t wrong = 0;
  for (std::uint64_t r = 0; r < 3000; ++r) {
    const std::uint64_t expected = !report->error_of(r) ? test::mixed(records[r].value)
                                   : has_value          ? 5
                                                        : poison;
    if (results[r] != expected) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("workers stay near the results that a function takes", "[records]") {
  Runtime runtime = test::two_devices();
  std::uint64_t made = 0, taken = 0, most = 0;
  const auto report = distribute(
      runtime, function("mix"),
      RecordInput::made_by<ActRecord>(5000,
                                      [&](std::uint64_t first, std::span<ActRecord> to) {
                                        made = std::max(made, first + to.size());
                                        most = std::max(most, made - taken);
                                      }),
      RecordOutput::taken_by<std::uint64_t>([&](std::uint64_t first, std::span<const std::uint64_t> results) {
        taken = first + results.size();
      }),
      {.devices = {"cpu:0", "null:0"}, .batch = 10});
  REQUIRE(report);
  CHECK((report->done == 5000 && taken == 5000));
  CHECK(most <= 2 * 2 * 10 + 10);
}

TEST_CASE("a set ends if a function does not take its results", "[records]") {
  const auto records = random_records(100000);
  Runtime runtime = test::two_devices();
  int calls = 0;
  RecordOptions few = options(false);
  few.batch = 10;
  const auto report = distribute(runtime, function("mix"), records,
                                 RecordOutput::taken_by<std::uint64_t>(
                                     [&](std::uint64_t, std::span<const std::uint64_t>) -> Result<void> {
                                       if (++calls == 3) return Error(Errc::io, "The archive is full.");
                                       return {};
                                     }),
                                 few);
  REQUIRE(report);
  CHECK(calls == 3);
  CHECK(report->not_run > 0);
  REQUIRE_FALSE(report->failed.empty());
  CHECK(report->failed[0].error.describe() == "io: The archive is full.");
  CHECK(report->done + report->failed_records() + report->not_run == 100000);
}
