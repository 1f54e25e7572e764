#pragma once
/// A process that runs beside a test.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <utility>

#include "support/catch.hpp"
#include "support/child.hpp"

namespace wye::test {

/// A child of `fork`, killed at the end of this object. Parent and child tell each other when they
/// may go on.
class RunningChild {
 public:
  /// Calls `body(*this)` in the child, which then ends with its result as the exit status, without
  /// any destructor.
  template <class F>
  explicit RunningChild(F body) {
    std::array<int, 2> to_parent{}, to_child{};
    REQUIRE(::pipe(to_parent.data()) == 0);
    REQUIRE(::pipe(to_child.data()) == 0);
    std::fflush(nullptr);
    pid_ = ::fork();
    const bool is_here = pid_ == 0;
    in_ = is_here ? to_child[0] : to_parent[0];
    out_ = is_here ? to_parent[1] : to_child[1];
    ::close(is_here ? to_child[1] : to_parent[1]);
    ::close(is_here ? to_parent[0] : to_child[0]);
    if (is_here) {
      is_child = true;
      for (const int number : {SIGSEGV, SIGABRT, SIGTERM}) ::signal(number, SIG_DFL);
      ::alarm(120);
      ::_exit(body(*this));
    }
    REQUIRE(pid_ > 0);
  }
  RunningChild(const RunningChild&) = delete;
  ~RunningChild() {
    kill();
    ::close(in_);
    ::close(out_);
  }

  pid_t pid() const { return pid_; }
  /// Tells the other process to go on.
  void tell() { (void)!::write(out_, "x", 1); }
  /// Waits until the other process tells. Returns false if it ends instead, or after 60 s.
  bool await() {
    pollfd waited{in_, POLLIN, 0};
    char told = 0;
    return ::poll(&waited, 1, 60'000) == 1 && ::read(in_, &told, 1) == 1;
  }
  /// Kills the child by `signal` and waits for its end.
  void kill(int signal = SIGKILL) {
    if (pid_ <= 0) return;
    ::kill(pid_, signal);
    (void)wait();
  }
  /// Waits for the end of the child. Returns its exit status, or the negative number of the signal
  /// that ended it.
  int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
};

}  // namespace wye::test
