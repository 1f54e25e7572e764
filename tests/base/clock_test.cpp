// Threads that are parked until an instant of a manual clock.
#include <wye/base/clock.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/gate.hpp"
#include "support/catch.hpp"
#include "support/thread.hpp"

using namespace std::chrono_literals;
using wye::Instant;
using wye::ManualClock;
using wye::base::Gate;
using wye::base::Lock;

TEST_CASE("a thread that waits until an instant of a manual clock wakes when the clock shows it", "[base]") {
  ManualClock clock, other;
  std::mutex mutex;
  Gate gate;
  const Instant until = clock.now() + 1h;
  std::atomic<bool> is_ready{true};
  wye::test::Thread waits([&] {
    Lock lock(mutex);
    is_ready = gate.wait(lock, clock, until, [] { return false; });
  });
  waits.await_parked();
  other.advance(2h);
  clock.advance(59min);
  waits.await_parked();
  CHECK_FALSE(waits.has_ended());
  clock.advance(1min);
  waits.join();
  CHECK_FALSE(is_ready);
  Lock lock(mutex);
  CHECK_FALSE(gate.wait(lock, clock, until, [] { return false; }));  // it has passed
  CHECK(gate.wait(lock, clock, until, [] { return true; }));
}

TEST_CASE("a thread that is about to park does not miss the advance of its clock", "[base]") {
  ManualClock clock;
  for (int round = 0; round < 500; ++round) {
    std::mutex mutex;
    Gate gate;
    const Instant until = clock.now() + 1h;
    std::thread waits([&] {
      Lock lock(mutex);
      (void)gate.wait(lock, clock, until, [] { return false; });
    });
    clock.advance(1h);
    waits.join();
  }
}

TEST_CASE("a wait by a manual clock that does not move ends after that time", "[base]") {
  ManualClock clock;
  std::mutex mutex;
  Gate gate;
  Lock lock(mutex);
  CHECK_FALSE(gate.wait(lock, clock, clock.now() + 1ms, [] { return false; }));
}
