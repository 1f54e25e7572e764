// Calls in a child process, and how it ended.
#include "base/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/running_child.hpp"

using namespace wye::base;
using namespace std::chrono_literals;
using How = ChildEnd::How;
using ChildBytes = std::vector<std::byte>;

namespace {

constexpr auto limit = 60s;

/// Runs `body`, which returns no result, after step 3.
template <class F>
ChildEnd end_of(F body) {
  return run_in_child(
      [&](const ReachStep& reach) -> std::optional<ChildBytes> {
        reach(2);
        reach(3);
        body();
        return ChildBytes{};
      },
      limit);
}

}  // namespace

TEST_CASE("a child process returns a result and the step that it reached", "[base][fork]") {
  const ChildBytes large(1 << 20, std::byte{255});
  const ChildEnd end = run_in_child(
      [&](const ReachStep& reach) -> std::optional<ChildBytes> { return reach(7), large; }, limit);
  REQUIRE(end.how == How::completed);
  CHECK(end.result == large);
  CHECK(end.step == 7);
  CHECK(end_of([] {}).how == How::completed);
}

TEST_CASE("a child process that faults has crashed, and one that is killed has not", "[base][fork]") {
  for (const int number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    const ChildEnd end = end_of([&] { ::raise(number); });
    REQUIRE(end.how == How::crashed);
    CHECK(end.crash.how == number);
    CHECK(end.step == 3);
  }
  CHECK(Crash{SIGSEGV}.text() == "signal 11 (a segmentation fault)");
  const ChildEnd exits = end_of([] { ::_exit(0); });
  REQUIRE(exits.how == How::crashed);
  CHECK(exits.crash.text() == "a call of exit");
  for (const int number : {SIGKILL, SIGTERM, SIGINT, SIGHUP}) {
    const ChildEnd end = end_of([&] { ::raise(number); });
    REQUIRE(end.how == How::killed);
    CHECK(end.signal == number);
    CHECK_FALSE(end.why.empty());
  }
}

TEST_CASE("a child process that cannot tell, throws or does not continue has an unknown end",
          "[base][fork]") {
  const ChildEnd silent =
      run_in_child([](const ReachStep&) -> std::optional<ChildBytes> { return std::nullopt; }, limit);
  CHECK(silent.how == How::unknown);
  CHECK(silent.why == "A child process could not use the driver.");
  CHECK(end_of([] { throw std::bad_alloc(); }).how == How::unknown);
  const ChildEnd late = run_in_child(
      [](const ReachStep&) -> std::optional<ChildBytes> {
        for (;;) ::pause();
      },
      20ms);
  CHECK(late.how == How::unknown);
  CHECK(late.why == "A child process did not continue within 0 s.");
}

namespace {

extern "C" void hide_fault(int) { ::_exit(0); }

}  // namespace

TEST_CASE("the application's handlers, terminal and core files have no part in a child process",
          "[base][fork]") {
  for (const int number : {SIGSEGV, SIGTERM}) {
    struct sigaction hides {
    }, before{};
    hides.sa_handler = hide_fault;
    REQUIRE(::sigaction(number, &hides, &before) == 0);
    const ChildEnd end = end_of([&] { ::raise(number); });
    REQUIRE(::sigaction(number, &before, nullptr) == 0);
    CHECK(end.how == (number == SIGSEGV ? How::crashed : How::killed));
  }
  const ChildEnd end = end_of([] {
    rlimit core{};
    if (::getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur != 0) ::_exit(1);
    std::array<char, 64> path{};
    for (const char* const link : {"/proc/self/fd/1", "/proc/self/fd/2"})
      if (::readlink(link, path.data(), path.size()) < 0 || std::string(path.data()) != "/dev/null")
        ::_exit(1);
  });
  CHECK(end.how == How::completed);
}

TEST_CASE("a host that collects the status of all children leaves the end unknown", "[base][fork]") {
  struct sigaction collects {
  }, before{};
  collects.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGCHLD, &collects, &before) == 0);
  const ChildEnd crashed = end_of([] { ::raise(SIGSEGV); }), completed = end_of([] {});
  REQUIRE(::sigaction(SIGCHLD, &before, nullptr) == 0);
  CHECK(crashed.how == How::unknown);
  CHECK(crashed.why == "The application has collected the status of a child process.");
  CHECK(completed.how == How::completed);
}

TEST_CASE("a child process ends with its parent", "[base][fork]") {
  std::array<int, 2> open{};
  REQUIRE(::pipe2(open.data(), O_CLOEXEC) == 0);
  wye::test::RunningChild parent([&](wye::test::RunningChild& self) {
    (void)end_of([&] {
      self.tell();
      for (;;) ::pause();
    });
    return 0;
  });
  ::close(open[1]);
  REQUIRE(parent.await());
  parent.kill();
  // The pipe has an end when neither has it open.
  pollfd waited{open[0], POLLIN, 0};
  REQUIRE(::poll(&waited, 1, 60'000) == 1);
  CHECK((waited.revents & POLLHUP) != 0);
  ::close(open[0]);
}
