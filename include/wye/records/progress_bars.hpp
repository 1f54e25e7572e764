#pragma once
/// Progress on a terminal.
#include <wye/base/clock.hpp>
#include <wye/records/record_report.hpp>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace wye::inline v0 {

/// One bar.
struct ProgressBar {
  std::string name;        ///< "GPU 0"
  std::uint64_t done = 0;  ///< of `total`
  std::uint64_t total = 0;
  std::uint64_t failed = 0;  ///< of `done`; shown unless it is 0
  double rate = 0;           ///< per second; shown unless it is 0
  std::string note = {};     ///< "12.5 s left"; at the end of the line
};

/// Draws several bars, one below the other, on a terminal, at most ten times a second. Elsewhere it
/// writes a line for the last bar every 5 s.
/// Threads: one thread at a time.
class WYE_API ProgressBars {
 public:
  /// Draws nothing for the time `quiet`: short work needs no bar.
  explicit ProgressBars(std::FILE* to, Duration quiet = {}, const Clock& clock = Clock::steady());
  ProgressBars(ProgressBars&&) noexcept;
  ProgressBars& operator=(ProgressBars&&) = delete;
  /// Leaves the bars as they are.
  ~ProgressBars();

  /// Draws the bars in place of the earlier ones. Lines are cut at the width of the terminal.
  void draw(std::span<const ProgressBar> bars);
  void draw(const ProgressBar& bar) { draw(std::span(&bar, 1)); }
  /// Draws the last bars at once.
  void finish(std::span<const ProgressBar> bars);
  /// Removes the bars before other output.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a sink for `RecordOptions::progress` with a bar for each device, and one for all. `to`
/// stays open until the last copy of the sink has ended.
WYE_API std::function<void(const RecordProgress&)> progress_bars(std::FILE* to);

namespace detail {
/// Returns the line of a bar, at most `columns` long: "GPU 0  [####....]  50 %  500 of 1,000".
WYE_API std::string progress_line(const ProgressBar& bar, std::size_t name_columns, std::size_t columns);
}  // namespace detail

}  // namespace wye
