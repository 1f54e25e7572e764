#pragma once
/// Child processes that run the program of this process again.
#include <wye/base/result.hpp>

#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/descriptor_watch.hpp"
#include "base/process.hpp"

namespace wye::inline v0::base {

/// How a process ended.
struct ProcessEnd {
  enum class How {
    exited,   ///< `number` is its exit status
    killed,   ///< `number` is the signal
    unknown,  ///< the application has collected the status itself
  };
  How how = How::unknown;
  int number = 0;
  /// Returns "ended with exit status 3", "killed by signal 11 (SIGSEGV)" or the like.
  std::string text() const;
  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

/// The parts of a new process that differ from this one.
struct SpawnOptions {
  std::vector<std::string> arguments = {};  ///< after the name of the program
  /// Variables of its environment; an empty value is a set and empty variable.
  std::vector<std::pair<std::string, std::string>> variables = {};
  /// Become its descriptors 3, 4 and so on. It inherits no others but 1 and 2. Its standard input is
  /// empty.
  std::vector<int> descriptors = {};
  int standard_error = -1;  ///< becomes its descriptor 2; -1: that of this process
};

/// A process that this process has started. Its handlers of signals are the default, and it has a
/// process group of its own: keys of a terminal that interrupt the application do not reach it.
/// Threads: one thread at a time.
class SpawnedProcess {
 public:
  /// Starts the program that this process runs, also if its file was replaced or removed meanwhile.
  /// Errors: unavailable, with the system's message; unsupported (Linux older than 5.4).
  static Result<SpawnedProcess> start(const SpawnOptions& options);
  SpawnedProcess(SpawnedProcess&&) noexcept = default;
  SpawnedProcess& operator=(SpawnedProcess&&) = delete;
  /// Kills the process and waits for its end. Does nothing in a child of `fork`.
  ~SpawnedProcess();

  int number() const noexcept { return number_; }
  /// Returns a descriptor that becomes readable when the process ends.
  int descriptor() const noexcept { return process_.number(); }
  void kill() noexcept;
  /// Waits for the end of the process.
  ProcessEnd collect() noexcept;

 private:
  SpawnedProcess(Descriptor process, int number) noexcept : process_(std::move(process)), number_(number) {}
  Descriptor process_;  // none: collected
  int number_;
  Origin origin_;
};

/// Ends this process when its parent, which has the number `parent`, ends: with a thread that lives
/// as long as the returned watch. The end of the process runs no handler of `exit`.
/// Errors: unavailable, unsupported.
Result<DescriptorWatch> end_with_parent(int parent);

/// Returns the number of this process, and that of its parent.
int process_number() noexcept;
int parent_number() noexcept;

}  // namespace wye::base
