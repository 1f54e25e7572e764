#pragma once
/// A progress line on the terminal.
#include <chrono>
#include <cstddef>
#include <string>

namespace document_network {

/// Prints nothing unless standard error is a terminal and the program takes longer than a second.
/// Threads: one thread at a time.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;  // the terminal has one line
  ~Progress();

  /// Shows that `done` of `total` parts of `work` have completed.
  void show(const char* work, std::size_t done, std::size_t total);
  /// Clears the line before other output.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_;
  bool visible_ = false;
  Clock::time_point next_;
};

/// "similarity  [#####.....]  50 %"
std::string progress_line(const char* work, std::size_t done, std::size_t total);

}  // namespace document_network
