#pragma once
/// Runs a part of a test in a child of `fork`, with a hard time limit.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/catch.hpp"

namespace wye::test {

/// How `in_child` describes a child that ended by `exit(0)`.
inline constexpr const char* success = "exit 0";

/// Returns whether this process is a child of `in_child`. The threads of its parent, and their
/// references, do not exist in it: the leak sanitizer asks for this (catch_main.cpp).
inline bool is_child = false;

/// How a child ends. Mesa's drivers join their threads when a process exits (22.3.6, `util_queue`).
/// In a child these are threads of the parent: if the child has started threads itself, it crashes
/// in `exit`.
enum class Leave { by_exit, at_once };

/// Forks and calls `body` in the child, whose exit status is the result, such as the number of a
/// failed check. Returns "exit <code>" or "signal <number>" (14: the time limit passed). Only the
/// parent may use assertions.
template <class F>
std::string in_child(F body, Leave leave = Leave::by_exit, unsigned seconds = 60) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    is_child = true;
    for (const int number : {SIGSEGV, SIGABRT, SIGTERM})
      ::signal(number, SIG_DFL);  // the test runner's handlers are for the parent
    ::alarm(seconds);
    const int code = body();
    leave == Leave::by_exit ? std::exit(code) : ::_exit(code);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit " + std::to_string(WEXITSTATUS(status));
}

/// Runs a hidden test case of this program in another process, for state that stays until a process
/// ends. The result is that of `in_child`; the process prints the failed assertions.
inline std::string in_own_process(const char* test_case, unsigned seconds = 60) {
  return in_child(
      [&] {
        ::execl("/proc/self/exe", "/proc/self/exe", test_case, static_cast<char*>(nullptr));
        return 127;
      },
      Leave::at_once, seconds);
}

/// In a child: ends it with the number of a failed check.
#define WYE_CHILD_CHECK(number, ...)                                       \
  do {                                                                     \
    if (!(__VA_ARGS__)) {                                                  \
      std::fprintf(stderr, "child, check %d: %s\n", number, #__VA_ARGS__); \
      return number;                                                       \
    }                                                                      \
  } while (false)

}  // namespace wye::test
