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

/// Whether this process is a child of `in_child`. Its parent's threads, and with them their references, are not there: the leak
/// sanitizer asks for it (catch_main.cpp).
inline bool is_child = false;

/// How a child ends. Mesa's drivers join their threads when a process exits (22.3.6, `util_queue`). In a child of a process that
/// has one open these are threads of its parent: the child crashes in `exit` if it has started threads itself.
enum class Leave { by_exit, at_once };

/// Forks and calls `body` in the child. The child exits with the result of `body`, such as the number of a failed check.
/// Returns "exit <code>" or "signal <number>" (14: the time limit passed). Assertions belong to the parent.
template <class F>
std::string in_child(F body, Leave leave = Leave::by_exit, unsigned seconds = 60) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    is_child = true;
    for (const int number : {SIGSEGV, SIGABRT, SIGTERM})
      ::signal(number, SIG_DFL);  // the test runner's are its own
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

/// Runs a hidden test case of this program in a child process, for effects that last until the process ends. Returns the
/// result of `in_child`. The process prints its failures.
inline std::string in_own_process(const char* test_case, unsigned seconds = 60) {
  return in_child(
      [&] {
        ::execl("/proc/self/exe", "/proc/self/exe", test_case, static_cast<char*>(nullptr));
        return 127;
      },
      Leave::at_once, seconds);
}

/// In a child: ends it with the number of a failure.
#define WYE_CHILD_CHECK(number, ...)                                       \
  do {                                                                     \
    if (!(__VA_ARGS__)) {                                                  \
      std::fprintf(stderr, "child, check %d: %s\n", number, #__VA_ARGS__); \
      return number;                                                       \
    }                                                                      \
  } while (false)

}  // namespace wye::test
