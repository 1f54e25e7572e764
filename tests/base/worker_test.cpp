#include "base/worker.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "base/gate.hpp"
#include "base/team.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/host_float.hpp"

using wye::base::Gate;
using wye::base::Lock;
using wye::base::on_stack;
using wye::base::Worker;

TEST_CASE("a worker is named, counted and joined", "[base]") {
  const int before = Worker::alive();
  char name[16] = "";
  int seen = -1;
  {
    auto worker = Worker::start("wye-a-name-that-is-too-long", [&] {
      pthread_getname_np(pthread_self(), name, sizeof name);
      seen = Worker::alive();
    });
    REQUIRE(worker);
  }
  CHECK(std::string(name) == "wye-a-name-that");
  CHECK(seen == before + 1);
  CHECK(Worker::alive() == before);
}

TEST_CASE("a worker whose body throws ends, and the process goes on", "[base]") {
  const int before = Worker::alive();
  for (int i = 0; i < 3; ++i) CHECK(Worker::start("wye-throws", [] { throw std::bad_alloc(); }));
  CHECK(Worker::alive() == before);
}

TEST_CASE("a worker has the default rounding, not that of the thread that starts it", "[base]") {
  const wye::test::HostFloat host(1);
  int seen = -1;
  {
    REQUIRE(Worker::start("wye-rounding", [&] { seen = std::fegetround(); }));
  }
  CHECK(seen == FE_TONEAREST);
}

TEST_CASE("a team continues after a task that throws", "[base]") {
  const auto team = wye::base::Team::share(2).value();
  team->post([] { throw std::bad_alloc(); });
  std::mutex mutex;
  Gate gate;
  bool ran = false;
  team->post([&] {
    const Lock lock(mutex);
    ran = true;
    gate.wake_all();
  });
  Lock lock(mutex);
  CHECK(gate.wait(lock, wye::Clock::steady().now() + std::chrono::minutes(1), [&] { return ran; }));
}

TEST_CASE("signals are blocked in a worker, but for those of its own faults", "[base]") {
  sigset_t host_before, host_after, inside;
  pthread_sigmask(SIG_SETMASK, nullptr, &host_before);
  {
    auto worker = *Worker::start("wye-signals", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); });
  }
  pthread_sigmask(SIG_SETMASK, nullptr, &host_after);
  for (int number : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGALRM, SIGPIPE}) {
    CAPTURE(number);
    CHECK(sigismember(&inside, number) == 1);
    CHECK(sigismember(&host_before, number) == sigismember(&host_after, number));
  }
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) CHECK(sigismember(&inside, number) == 0);
}

TEST_CASE("give_way affects only the calling thread", "[base]") {
  const int before = getpriority(PRIO_PROCESS, 0);
  int inside = -1;
  {
    auto worker = *Worker::start("wye-gives-way", [&] {
      wye::base::give_way();
      inside = getpriority(PRIO_PROCESS, 0);
    });
  }
  CHECK(inside == std::min(before + 10, 19));
  CHECK(getpriority(PRIO_PROCESS, 0) == before);
}

TEST_CASE("the captures of a worker's function are destroyed before the worker counts as ended", "[base]") {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  {
    auto worker = *Worker::start("wye-held", [held = std::move(held)] {});
  }
  CHECK(watch.expired());
}

TEST_CASE("a worker may end its own owner", "[base]") {
  const int before = Worker::alive();
  std::mutex mutex;
  Gate gate;
  auto owner = std::make_shared<std::unique_ptr<Worker>>();
  {
    const Lock lock(mutex);
    *owner = std::make_unique<Worker>(*Worker::start("wye-own", [&mutex, owner] {
      const Lock wait_until_owned(mutex);
      owner->reset();
    }));
  }
  while (Worker::alive() != before) {
    Lock lock(mutex);
    gate.wait(lock, wye::Clock::steady().now() + std::chrono::milliseconds(1), [] { return false; });
  }
  CHECK(*owner == nullptr);
}

TEST_CASE("a gate wakes the waiter, and returns at its deadline", "[base]") {
  std::mutex mutex;
  Gate gate;
  bool ready = false;
  auto worker = *Worker::start("wye-gate", [&] {
    const Lock lock(mutex);
    ready = true;
    gate.wake_all();
  });
  Lock lock(mutex);
  CHECK(gate.wait(lock, wye::Instant::max(), [&] { return ready; }));
  CHECK_FALSE(gate.wait(lock, wye::Clock::steady().now(), [] { return false; }));
  CHECK(gate.wait(lock, wye::Clock::steady().now(), [] { return true; }));
}

TEST_CASE("a wait by the application's clock parks on the steady clock", "[base]") {
  using namespace std::chrono_literals;
  const wye::Clock& steady = wye::Clock::steady();
  const wye::Instant now = steady.now();
  CHECK(wye::base::parked_until(steady, now + 1s) == now + 1s);
  wye::ManualClock clock;
  clock.advance(1000h);
  CHECK(wye::base::parked_until(clock, wye::Instant::max()) == wye::Instant::max());
  const wye::Instant until = wye::base::parked_until(clock, clock.now() + 5s);
  CHECK(until >= now + 5s);
  CHECK(until <= steady.now() + 5s);
}

TEST_CASE("a worker has the stack it was started with", "[base]") {
  const auto stack_of_this = [] {
    pthread_attr_t attributes;
    REQUIRE(pthread_getattr_np(pthread_self(), &attributes) == 0);
    std::size_t bytes = 0;
    pthread_attr_getstacksize(&attributes, &bytes);
    pthread_attr_destroy(&attributes);
    return wye::Result<std::size_t>(bytes);
  };
  CHECK(on_stack(wye::Bytes{48ull << 20}, "wye-deep", stack_of_this).value() == 48u << 20);
  CHECK(on_stack({}, "wye-usual", stack_of_this).value() != 48u << 20);
  CHECK(on_stack(wye::Bytes{1}, "wye-none", stack_of_this).error().sentence() ==
        "Thread 'wye-none' cannot be started: Invalid argument.");
}

namespace {

/// Uses `left` KiB of stack.
int use_stack(int left) {
  volatile char piece[1024] = {};
  piece[static_cast<std::size_t>(left) % sizeof(piece)] = 1;
  return left == 0 ? 0 : use_stack(left - 1) + piece[static_cast<std::size_t>(left) % sizeof(piece)];
}

}  // namespace

TEST_CASE("if no thread can be started, the calling thread uses a stack of its own", "[base][no_sanitizer]") {
  const auto body = []() -> int {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) return 1;
    const rlimit none{0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
    if (Worker::start("wye-test", [] {})) return 0;  // this system gives them all the same
    const pthread_t caller = pthread_self();
    // More than the caller's stack has.
    const auto deep = on_stack(wye::Bytes{64ull << 20}, "wye-deep", [&]() -> wye::Result<int> {
      if (pthread_equal(pthread_self(), caller) == 0) return -1;
      return use_stack(40 << 10);
    });
    WYE_CHILD_CHECK(3, deep && *deep == 40 << 10);
    bool has_caught = false;
    try {
      (void)on_stack(wye::Bytes{1ull << 20}, "wye-throws", []() -> wye::Result<int> {
        throw std::bad_alloc();
      }).has_value();
    } catch (const std::bad_alloc&) {
      has_caught = true;
    }
    WYE_CHILD_CHECK(4, has_caught);
    WYE_CHILD_CHECK(5, !on_stack(wye::Bytes{1ull << 62}, "wye-vast", []() -> wye::Result<int> { return 1; }));
    WYE_CHILD_CHECK(6, on_stack({}, "wye-usual", []() -> wye::Result<int> { return 7; }).value() == 7);
    return 0;
  };
  CHECK(wye::test::in_child(body) == wye::test::success);
}

TEST_CASE("an exception thrown on a stack of its own reaches the caller", "[base]") {
  const int before = Worker::alive();
  const auto refuse = []() -> wye::Result<int> { throw std::bad_alloc(); };
  CHECK_THROWS_AS(on_stack({}, "wye-throws", refuse), std::bad_alloc);
  CHECK(Worker::alive() == before);
}
