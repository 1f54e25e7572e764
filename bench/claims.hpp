#pragma once
/// The figures that the founding documents of wye state, and the benchmarks that measure them.
/// Needs no Google Benchmark.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace wye_bench {

/// The kind of a claimed figure: its unit, its direction, and its computation from the numbers of a
/// row.
enum class Figure {
  milliseconds,       ///< the time of an iteration, or a counter in seconds; at most
  megabytes,          ///< a counter in bytes; at most
  hits,               ///< percent, of a counter that is the fraction of misses; at least
  jobs,               ///< a counter as it is; at least
  frames_per_second,  ///< one frame per iteration; at least
  saved,              ///< percent of the time of the row `Claim::over`; at least
  times,              ///< the time of the row `Claim::over` divided by the time; at least
};

/// A row is a benchmark "<work>/<peer>".
struct Claim {
  std::string name;
  std::string on = {};  ///< backend; empty if the claim is about none
  Figure figure = Figure::milliseconds;
  double claimed = 0;
  double goal = 0;           ///< a second figure that the documents set as the goal; 0: none
  std::string row = {};      ///< measures it; empty: no benchmark does
  std::string counter = {};  ///< of the row; empty: its time
  std::string over = {};     ///< the row that it is compared with, for `saved` and `times`
  std::string bound = {};    ///< a row whose figure is the best that this machine allows
  std::string how = {};      ///< the measured work
  std::string why = {};      ///< the reason, if it is not met
  std::string needs = {};    ///< the reason, if it is not measured
};

/// Returns all claims, in the order of the table.
const std::vector<Claim>& claims();

/// Returns a regular expression for the names of the benchmarks that `list` needs, with any
/// parameters after them.
std::string claims_filter(const std::vector<Claim>& list = claims());

/// The results of a run.
struct Results {
  /// By "<work>/<peer>", seconds per iteration; by "<work>.<counter>/<peer>", the counter. One
  /// number per repetition.
  std::map<std::string, std::vector<double>, std::less<>> numbers;
  std::map<std::string, std::string, std::less<>> skipped;  ///< the message of each row that skipped itself
};

/// The comparison of one claim with a run, in the unit of its figure.
struct Verdict {
  Claim claim;
  std::optional<double> measured = std::nullopt;  ///< median of the repetitions
  double p10 = 0, p90 = 0;                        ///< of the repetitions
  std::optional<double> bound = std::nullopt;
  bool is_met = false;       ///< the claimed figure
  bool is_goal_met = false;  ///< true without a goal if `is_met`
  std::string reason = {};   ///< why it is not met, or not measured
};

std::vector<Verdict> judge(const std::vector<Claim>& list, const Results& results);

/// A device of the machine of a run.
struct ClaimDevice {
  std::string backend;
  std::string name;
  bool is_cpu = false;
};

/// Returns a Markdown table of the verdicts, after a list of `devices`, preferred first.
std::string claims_table(const std::vector<Verdict>& verdicts, const std::vector<ClaimDevice>& devices);

}  // namespace wye_bench
