#pragma once
/// Runs of record sets on two devices.
#include <wye/records/distribute.hpp>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "functions.hpp"
#include "set.hpp"

namespace wye::test {

/// Restarts that cost a test no time.
inline records::Pace quick() {
  using namespace std::chrono_literals;
  return {.join_limit = 60s,
          .first_restart = 1ms,
          .longest_restart = 2ms,
          .most_ends = 1000,
          .longest_wait = 10ms};
}

struct Run {
  std::vector<std::uint64_t> results;
  Result<RecordReport> report;
};
inline Run run(const std::string& name, const std::vector<ActRecord>& records, RecordOptions options,
               records::Pace pace = quick()) {
  Runtime runtime = two_devices();
  if (options.devices.ids.empty() && !options.devices.number) options.devices = {"cpu:0", "null:0"};
  std::vector<std::uint64_t> results(records.size(), poison);
  auto report = records::run_set(runtime, function(name), records, results, options, pace);
  return {std::move(results), std::move(report)};
}

}  // namespace wye::test
