// Workers that are threads, and workers that are copies of this program.
#include "process/workers.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/worker.hpp"
#include "support/await.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/open_descriptors.hpp"

using namespace wye;
using namespace std::chrono_literals;
using process::Worker;
using process::WorkerEnd;
using process::Workers;

namespace {

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

std::atomic<std::uint32_t>& word(std::span<std::byte> memory) {
  return *reinterpret_cast<std::atomic<std::uint32_t>*>(memory.data());
}

/// Answers each call with the double of the word, until it is asked to end.
void double_words(WorkerEnd& end) {
  for (;;) {
    const std::uint32_t seen = end.calls();
    if (end.is_ending()) return;
    if (word(end.memory()) % 2 != 0) {
      word(end.memory()) = 2 * word(end.memory());
      end.ring();
    }
    end.wait(seen);
  }
}

/// Waits until `ready()`, by the bell.
template <class Ready>
void wait_for(const Workers& workers, Ready ready) {
  const Instant limit = Deadline(60s).at(Clock::steady());
  for (;;) {
    const std::uint32_t seen = workers.calls();
    if (ready()) return;
    REQUIRE(Clock::steady().now() < limit);
    workers.wait(seen, limit);
  }
}

Worker start(Workers& workers, std::string_view message, bool is_process) {
  process::WorkerOptions options{.name = "test", .message = bytes_of(message), .memory = Bytes{4096}};
  if (!is_process) options.body = double_words;
  return workers.start(options).value();
}

[[noreturn]] void wait_for_ever() {
  ::alarm(120);
  for (;;) ::pause();
}

}  // namespace

/// The worker processes of this program do as the message says.
int run_as_worker(int, char**);
int run_as_worker(int, char** argv) {
  if (argv[1] && !std::strcmp(argv[1], "wye-worker") && argv[2] && !std::strcmp(argv[2], "never joins"))
    wait_for_ever();
  auto joined = WorkerEnd::join();
  if (!joined) return 90;
  if (!*joined) return -1;
  for (const int number : {SIGSEGV, SIGABRT}) ::signal(number, SIG_DFL);  // not those of a sanitizer
  WorkerEnd& end = **joined;
  const std::string_view message = text_of(end.message());
  if (message == "double") double_words(end);
  if (message == "exit") return 7;
  if (message == "segv") ::raise(SIGSEGV);
  if (message == "stop") ::raise(SIGSTOP), wait_for_ever();
  if (message == "hang") wait_for_ever();
  if (message == "write") {
    std::fprintf(stderr, "%s the end\n", std::string(5000, '.').c_str());
    ::abort();
  }
  if (message == "tell") {  // where it is, for a test whose parent ends
    word(end.memory()) = static_cast<std::uint32_t>(::getpid());
    end.ring();
    wait_for_ever();
  }
  return 0;
}

TEST_CASE("a thread and a process answer their parent through shared memory", "[process]") {
  const bool is_process = GENERATE(false, true);
  auto workers = Workers::open().value();
  auto worker = start(workers, "double", is_process);
  CHECK(worker.is_process() == is_process);
  CHECK((worker.process_number() > 0) == is_process);
  wait_for(workers, [&] { return worker.has_joined(); });
  for (std::uint32_t n = 1; n < 2000; n += 2) {
    word(worker.memory()) = n;
    worker.wake();
    wait_for(workers, [&] { return word(worker.memory()) == 2 * n; });
  }
  CHECK_FALSE(worker.has_ended());
  worker.ask_to_end();
  wait_for(workers, [&] { return worker.has_ended(); });
  CHECK(worker.collect().reason == (is_process ? "ended with exit status 0" : "returned"));
}

TEST_CASE("the end of a process has its reason and its output", "[process]") {
  auto workers = Workers::open().value();
  const auto end_of = [&](std::string_view message) {
    auto worker = start(workers, message, true);
    wait_for(workers, [&] { return worker.has_ended(); });
    return worker.collect();
  };
  CHECK(end_of("exit").reason == "ended with exit status 7");
  const auto killed = end_of("segv");
  CHECK(killed.reason == "killed by signal 11 (SIGSEGV)");
  CHECK((killed.is_by_signal && killed.number == SIGSEGV));
  const auto written = end_of("write");
  CHECK(written.reason == "killed by signal 6 (SIGABRT)");
  CHECK(written.output.size() == 4096);
  CHECK(written.output.ends_with("... the end\n"));
}

TEST_CASE("a process that hangs or is stopped can be killed", "[process]") {
  auto workers = Workers::open().value();
  auto worker = start(workers, GENERATE("hang", "stop"), true);
  wait_for(workers, [&] { return worker.has_joined(); });
  worker.kill();
  wait_for(workers, [&] { return worker.has_ended(); });
  CHECK(worker.collect().reason == "killed by signal 9 (SIGKILL)");
}

TEST_CASE("a process that does not join is seen", "[process]") {
  auto workers = Workers::open().value();
  auto worker = workers.start({.name = "never joins", .memory = Bytes{64}}).value();
  CHECK_FALSE(worker.has_joined());
  worker.kill();
  wait_for(workers, [&] { return worker.has_ended(); });
}

TEST_CASE("the end of a process is unknown if the application collects it", "[process]") {
  auto workers = Workers::open().value();
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  auto worker = start(workers, "segv", true);
  wait_for(workers, [&] { return worker.has_ended(); });
  CHECK(worker.collect().reason == "ended, and the application has collected its status");
  ::signal(SIGCHLD, before);
}

TEST_CASE("nothing of workers stays: no process, thread or descriptor", "[process]") {
  const int descriptors = test::open_descriptors();
  const int threads = base::Worker::alive();
  for (const char* message : {"double", "exit", "segv", "hang", "stop"}) {
    auto workers = Workers::open().value();
    auto first = start(workers, message, true);
    auto second = start(workers, message, true);
    auto thread = start(workers, message, false);
    wait_for(workers, [&] { return first.has_joined(); });
  }
  CHECK(test::open_descriptors() == descriptors);
  test::await([&] { return base::Worker::alive() <= threads; });
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("a worker ends with its parent, even if that is killed", "[process][no_sanitizer]") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const auto parent = ::fork();
  if (parent == 0) {
    test::is_child = true;
    ::alarm(60);
    auto workers = Workers::open().value();
    auto running = start(workers, "tell", true);
    for (std::uint32_t seen = workers.calls(); word(running.memory()) == 0; seen = workers.calls())
      workers.wait(seen, Instant::max());
    const auto number = static_cast<int>(word(running.memory()));
    if (::write(ends[1], &number, sizeof(number)) != sizeof(number)) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  }
  int number = 0;
  REQUIRE(::read(ends[0], &number, sizeof(number)) == sizeof(number));
  CHECK(::waitpid(parent, nullptr, 0) == parent);
  test::await([&] { return ::kill(number, 0) == -1; });
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("joined: a worker stays one after the end of its parent", "[.][spawned]") {
  ::setenv("WYE_WORKER", "1", 1);  // no process of a test has that parent
  if (!WorkerEnd::is_worker_process()) ::_exit(1);
  const auto joined = WorkerEnd::join();
  if (joined || joined.error() != Errc::unavailable) ::_exit(2);
  ::_exit(!std::getenv("WYE_WORKER") && WorkerEnd::is_worker_process() ? 0 : 3);
}

TEST_CASE("a worker whose parent has ended does not run as the application", "[process]") {
  CHECK(test::in_own_process("joined: a worker stays one after the end of its parent") == test::success);
}

TEST_CASE("a process without the variable, or with another value, is no worker", "[process]") {
  CHECK_FALSE(WorkerEnd::is_worker_process());
  CHECK_FALSE(WorkerEnd::join().value());
  ::setenv("WYE_WORKER", "no number", 1);
  CHECK_FALSE(WorkerEnd::is_worker_process());
  CHECK_FALSE(WorkerEnd::join().value());
  ::unsetenv("WYE_WORKER");
}

TEST_CASE("memory that cannot be had is an error", "[process]") {
  auto workers = Workers::open().value();
  CHECK(workers.start({.memory = Bytes{~0ull}}).error() == Errc::out_of_memory);
  CHECK(workers.start({.memory = Bytes{1ull << 50}}).error() == Errc::out_of_memory);
}
