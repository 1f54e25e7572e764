#pragma once
/// A child process that calls a driver or compiler in place of its parent, so that a crash ends the
/// child only.
#include <wye/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wye::inline v0::base {

/// How a process that crashed was ended: by the number of a signal that a process gets for its own
/// faults (SIGSEGV, SIGABRT ...), or by a call of `exit`.
struct Crash {
  static constexpr std::uint8_t by_exit = 255;
  std::uint8_t how = 0;
  /// Returns "signal 11 (a segmentation fault)" or "a call of exit".
  std::string text() const;
  friend bool operator==(const Crash&, const Crash&) = default;
};

/// How a child process ended.
struct ChildEnd {
  enum class How {
    completed,  ///< `result` is that of the body
    crashed,    ///< `crash` says how: only the body can have caused it
    killed,     ///< by a signal that another process or the system sent
    unknown,    ///< it was not started, did not end in time, or its parent has taken its status
  };
  How how = How::unknown;
  std::vector<std::byte> result = {};
  Crash crash = {};
  int signal = 0;         ///< that killed it
  std::uint8_t step = 0;  ///< that it had reached
  std::string why = {};   ///< a sentence, if `how` is `unknown` or `killed`
};

/// A step in which no earlier process can have ended, because only a child process has it.
constexpr std::uint8_t child_only_step = 253;
/// Tells the parent that the child has reached a step, 1 to 253.
using ReachStep = std::function<void(std::uint8_t)>;
/// Runs in the child. Returns nothing if it cannot tell.
using ChildBody = std::function<std::optional<std::vector<std::byte>>(const ReachStep&)>;

/// Runs `body` in a child of `fork` and waits for the end of the child. The child has no other
/// thread of its parent, ends with the calling thread, writes no core file, and does not write to
/// the standard output and error. No handler of the application for signals runs in it. A child
/// that does not reach its next step or end within `limit` is ended.
///
/// The host gets SIGCHLD at its end. If the host collects the status of all children, the status of
/// this child may be unknown.
/// Threads: thread-safe.
ChildEnd run_in_child(const ChildBody& body, Duration limit);

}  // namespace wye::base
