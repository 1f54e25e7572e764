#pragma once
/// A line on the terminal that says how far the program is.
#include <chrono>
#include <cstddef>
#include <string>

namespace document_network {

/// Shows nothing unless standard error is a terminal and the program takes longer than a second.
/// Threads: one thread at a time.
class Progress {
 public:
  Progress();
  Progress(const Progress&) = delete;  // one terminal has one line
  ~Progress();

  /// Says that `done` of `total` parts of `work` are done.
  void show(const char* work, std::size_t done, std::size_t total);
  /// Takes the line away, so that something else can be written.
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
