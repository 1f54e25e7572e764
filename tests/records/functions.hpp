#pragma once
/// The functions of the tests. Worker processes are copies of the test program and have the same.
#include <wye/records/distribute.hpp>

#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace wye::test {

/// What a record does to its worker.
enum class Act : std::uint32_t {
  compute,
  fail,
  throw_exception,
  throw_no_memory,
  segv,
  kill,
  stop,
  exit_3,
  exit_0,
  hang,
  write_text,
  write_garbage,
  work,
  need_memory,
};

struct ActRecord {
  std::uint64_t value = 0;
  Act act = Act::compute;
  std::uint32_t unused = 0;
};

using Line = RecordLine<60>;

/// Counts of records about those of workers (4) and of whole batches of 128.
inline constexpr std::uint64_t edge_counts[] = {0,   1,   2,   3,   4,    5,    127,  128,
                                                129, 255, 256, 257, 1279, 1280, 1281, 20000};

inline std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9e3779b97f4a7c15ull;
  return value ^ (value >> 29);
}

const std::vector<RecordFunction>& functions();
const RecordFunction& function(const std::string& name);

/// Records with random values.
inline std::vector<ActRecord> random_records(std::uint64_t count, unsigned seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<ActRecord> records(count);
  for (ActRecord& record : records) record.value = random();
  return records;
}

inline Runtime two_devices() { return Runtime::open({.pool = {.backends = {"cpu", "null"}}}).value(); }

inline constexpr std::uint64_t poison = 0xababababababababull;

/// Checks that each record is done, with its result, or failed, without a change of its result.
inline void check_report(const RecordReport& report, const std::vector<ActRecord>& records,
                         const std::vector<std::uint64_t>& results) {
  CHECK(report.records == records.size());
  CHECK(report.done + report.failed_records() + report.not_run == report.records);
  std::uint64_t done = 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t r = 0; r < records.size(); ++r) {
    if (report.error_of(r) || (report.not_run != 0 && results[r] == poison)) {
      if (results[r] != poison) ++wrong;
    } else {
      if (results[r] != mixed(records[r].value)) ++wrong;
      ++done;
    }
  }
  CHECK(wrong == 0);
  CHECK(done == report.done);
  std::uint64_t of_devices = 0;
  for (const RecordDevice& device : report.devices) of_devices += device.done;
  CHECK(of_devices == report.done);
}

}  // namespace wye::test
