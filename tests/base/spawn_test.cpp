// Processes that run this program again, shared memory, and the thread that waits for descriptors.
#include "base/spawn.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "base/shared_memory.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/open_descriptors.hpp"

using namespace wye;
using base::ProcessEnd;
using base::SpawnedProcess;

namespace {

/// Runs a hidden case of this program in another process.
SpawnedProcess run_case(const char* name, base::SpawnOptions options = {}) {
  options.arguments = {name};
  return SpawnedProcess::start(options).value();
}

}  // namespace

TEST_CASE("spawned: exits with status 3", "[.][spawned]") { ::_exit(3); }
TEST_CASE("spawned: is killed by signal 11", "[.][spawned]") {
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}
TEST_CASE("spawned: does not end", "[.][spawned]") {
  ::alarm(60);
  for (;;) ::pause();
}
TEST_CASE("spawned: exits with the number of its descriptors", "[.][spawned]") {
  ::_exit(test::open_descriptors());
}
TEST_CASE("spawned: exits with 1 if its variables are right", "[.][spawned]") {
  const char* const replaced = std::getenv("WYE_TEST_REPLACED");
  const char* const kept = std::getenv("WYE_TEST_KEPT");
  ::_exit(replaced && kept && !std::strcmp(replaced, "new=1") && !std::strcmp(kept, "old") ? 1 : 2);
}
TEST_CASE("spawned: adds one to shared memory", "[.][spawned]") {
  auto block = base::SharedBlock::map(base::Descriptor(3));
  if (!block) ::_exit(2);
  block->bytes()[0] = std::byte(std::to_integer<int>(block->bytes()[0]) + 1);
  ::_exit(::ftruncate(3, 0) == 0 ? 3 : 1);
}
TEST_CASE("spawned: exits with 1 if signals have their default actions", "[.][spawned]") {
  struct sigaction action {};
  ::sigaction(SIGPIPE, nullptr, &action);
  sigset_t blocked;
  ::sigprocmask(SIG_BLOCK, nullptr, &blocked);
  ::_exit(action.sa_handler == SIG_DFL && ::sigismember(&blocked, SIGUSR1) == 0 ? 1 : 2);
}

TEST_CASE("a spawned process tells how it ended", "[base][spawn]") {
  CHECK(run_case("spawned: exits with status 3").collect() == ProcessEnd{ProcessEnd::How::exited, 3});
  auto killed = run_case("spawned: is killed by signal 11");
  const ProcessEnd end = killed.collect();
  CHECK(end == ProcessEnd{ProcessEnd::How::killed, SIGSEGV});
  CHECK(end.text() == "killed by signal 11 (SIGSEGV)");
  CHECK((ProcessEnd{ProcessEnd::How::exited, 3}).text() == "ended with exit status 3");
  CHECK((ProcessEnd{ProcessEnd::How::killed, 100}).text() == "killed by signal 100 (unknown)");
}

TEST_CASE("the descriptor of a spawned process becomes readable at its end", "[base][spawn]") {
  auto process = run_case("spawned: does not end");
  pollfd waited{process.descriptor(), POLLIN, 0};
  CHECK(::poll(&waited, 1, 0) == 0);
  process.kill();
  CHECK(::poll(&waited, 1, 60000) == 1);
  CHECK(process.collect() == ProcessEnd{ProcessEnd::How::killed, SIGKILL});
}

TEST_CASE("the end of the object ends a spawned process", "[base][spawn]") {
  int number = 0;
  {
    const auto process = run_case("spawned: does not end");
    number = process.number();
    CHECK(::kill(number, 0) == 0);
  }
  CHECK(::kill(number, 0) == -1);
}

TEST_CASE("a spawned process inherits the named descriptors only", "[base][spawn]") {
  const int inheritable = ::open("/dev/null", O_RDONLY);
  const int named = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(run_case("spawned: exits with the number of its descriptors").collect().number == 3);
  CHECK(run_case("spawned: exits with the number of its descriptors", {.descriptors = {named, named}})
            .collect()
            .number == 5);
  ::close(inheritable);
  ::close(named);
}

TEST_CASE("a spawned process has the variables of its parent and those of its options", "[base][spawn]") {
  ::setenv("WYE_TEST_REPLACED", "old", 1);
  ::setenv("WYE_TEST_KEPT", "old", 1);
  CHECK(run_case("spawned: exits with 1 if its variables are right",
                 {.variables = {{"WYE_TEST_REPLACED", "new=1"}}})
            .collect()
            .number == 1);
  ::unsetenv("WYE_TEST_REPLACED");
  ::unsetenv("WYE_TEST_KEPT");
}

TEST_CASE("a spawned process has default actions for signals", "[base][spawn]") {
  const auto before = ::signal(SIGPIPE, SIG_IGN);
  sigset_t one, masked;
  ::sigemptyset(&one);
  ::sigaddset(&one, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &one, &masked);
  CHECK(run_case("spawned: exits with 1 if signals have their default actions").collect().number == 1);
  ::pthread_sigmask(SIG_SETMASK, &masked, nullptr);
  ::signal(SIGPIPE, before);
}

TEST_CASE("the end of a process is unknown if the application ignores SIGCHLD", "[base][spawn]") {
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  CHECK(run_case("spawned: exits with status 3").collect() == ProcessEnd{});
  ::signal(SIGCHLD, before);
  CHECK(ProcessEnd{}.text() == "ended, and the application has collected its status");
}

TEST_CASE("a spawned process shares a block, whose size it cannot change", "[base][spawn]") {
  auto block = base::SharedBlock::create(Bytes{5000}).value();
  CHECK(block.bytes().size() == 5000);
  block.bytes()[0] = std::byte{41};
  CHECK(run_case("spawned: adds one to shared memory", {.descriptors = {block.descriptor()}})
            .collect()
            .number == 1);
  CHECK(block.bytes()[0] == std::byte{42});
  CHECK(block.bytes()[4999] == std::byte{0});
}

TEST_CASE("a block that is too large is an error", "[base][spawn]") {
  const auto refused = base::SharedBlock::create(Bytes{1ull << 62});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().describe().starts_with("out_of_memory: Shared memory (4.00 EiB) exceeds the memory"));
  CHECK(base::SharedBlock::map(base::Descriptor(::open("/dev/null", O_RDONLY))).error() ==
        Errc::invalid_argument);
}

TEST_CASE("a watch calls the function of a readable descriptor until it returns false", "[base][spawn]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  std::atomic<int> calls{0};
  {
    auto watch = base::DescriptorWatch::start("watch").value();
    watch.add(ends[0], [&] {
      char byte = 0;
      (void)!::read(ends[0], &byte, 1);
      return ++calls < 2;
    });
    for (int expected = 1; expected <= 2; ++expected) {
      REQUIRE(::write(ends[1], "x", 1) == 1);
      test::await([&] { return calls == expected; });
    }
    REQUIRE(::write(ends[1], "x", 1) == 1);
  }
  CHECK(calls == 2);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("no function of a watch runs after its removal", "[base][spawn]") {
  int ends[2];
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(::write(ends[1], "x", 1) == 1);
  auto watch = base::DescriptorWatch::start("watch").value();
  for (int round = 0; round < 200; ++round) {
    auto calls = std::make_unique<std::atomic<int>>(0);
    watch.add(ends[0], [counted = calls.get()] { return ++*counted, true; });
    test::await([&] { return *calls > 0; });
    watch.remove(ends[0]);  // then the counter may be freed
  }
  ::close(ends[0]);
  ::close(ends[1]);
}
