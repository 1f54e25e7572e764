#pragma once
// The costs of wye as a multiple of those of a peer for the same work: time, and every other
// counter of a benchmark as a work of its own, "<work>.<counter>". Work without measured time is
// compared by its counters only.
#include <benchmark/benchmark.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "claims.hpp"

namespace wye_bench {

struct Ratio {
  std::string work;
  std::string peer;
  double median = 0, p10 = 0, p90 = 0;  // of wye's time over the peer's, repetition by repetition
  double bar = 0;                       // the limit of `median`; 0 if there is none
  double handover = 0;  // the bar holds only if a hand-over between threads takes less, in seconds; 0: always
  bool or_other = false;     // it is enough that this bar or another one of the work holds
  bool other_holds = false;  // one of those does
  bool holds() const { return bar == 0 || median <= bar || other_holds; }
};

// Prints the summary of the repetitions at once, and keeps the time of each.
class Collector : public benchmark::ConsoleReporter {
 public:
  Collector() : ConsoleReporter(OO_Tabular) {}
  bool ReportContext(const Context& context) override;
  void ReportRuns(const std::vector<Run>& runs) override;
  std::vector<Ratio> ratios() const;
  /// Returns the wall times and counters of all rows, and the messages of skipped rows.
  Results results() const;

 private:
  struct Times {
    std::vector<double> wall, cpu;  // seconds per iteration; of a counter, the number itself
  };
  bool has_context_ = false;
  std::map<std::string, std::map<std::string, Times>> times_;  // work -> who -> one per repetition
  std::map<std::string, std::string, std::less<>> skipped_;    // row -> message
};

/// Takes away the bars that do not hold on a machine where a hand-over takes `seconds`.
void apply_handover(std::vector<Ratio>& ratios, double seconds);
void print(const std::vector<Ratio>& ratios, double handover);
bool write_json(const std::vector<Ratio>& ratios, double handover, const std::string& file);

}  // namespace wye_bench
