// The slots of a processor, without a pool.
#include "silicon/slots.hpp"

#include <wye/base/clock.hpp>

#include <chrono>
#include <cstdint>

#include "support/catch.hpp"

using namespace wye;
using namespace std::chrono_literals;

namespace {

/// A pool that takes no slots. Counts the calls.
struct Taker final : silicon::SlotTaker {
  void serve_waiting() noexcept override { ++served; }
  int served = 0;
};

}  // namespace

TEST_CASE("slots that follow the load fall when run times stretch, and rise when a request waits",
          "[silicon][slots]") {
  Taker taker;
  silicon::Slots slots(8);
  const auto member = slots.join(taker, {.limit = 4, .follows_load = true});
  const auto windows = [&](int count, Duration run_time) {
    for (int i = 0; i < 16 * count; ++i)
      if (slots.note_run(7, run_time)) member->serve();
    return slots.limit();
  };
  CHECK(windows(3, 1ms) == 4);
  CHECK(windows(1, 2ms) == 3);
  CHECK(windows(1, 2ms) == 2);
  CHECK(windows(9, 2ms) == 1);   // never less
  CHECK(windows(40, 1ms) == 1);  // no request waits
  member->wait(Instant(1ns));
  CHECK(windows(1, 1ms) == 2);
  CHECK(taker.served == 1);
  member->wait(Instant(1ns));
  CHECK(windows(10, 1ms) == 4);  // never more than the limit
  CHECK(windows(1, 3ms) == 3);
  CHECK(windows(16, 1ms) == 3);  // it stays calm
  CHECK(windows(1, 1ms) == 4);
  CHECK(windows(3, 10ms) == 1);
  CHECK(windows(300, 10ms) == 4);  // the short ones are forgotten
  member->leave();
  CHECK(slots.limit() == 8);
}

TEST_CASE("jobs of different lengths are not counted as stretched", "[silicon][slots]") {
  Taker taker;
  silicon::Slots slots(4);
  const auto member = slots.join(taker, {.follows_load = true});
  for (std::uint64_t i = 0; i < 10'000; ++i) (void)slots.note_run(i % 100, Duration(1 + 1000 * (i % 100)));
  CHECK(slots.limit() == 4);
  member->leave();
}

TEST_CASE("a slot that a shortage of memory took comes back with each window of jobs", "[silicon][slots]") {
  Taker taker;
  const ManualClock clock;
  silicon::Slots slots(4);
  const auto member = slots.join(taker, {});
  silicon::HeldSlot job;
  job.clock = &clock;
  REQUIRE(member->take(job, {}, clock.now(), Instant::min()));
  const auto runs = [&](int count) {
    for (int i = 0; i < count; ++i) (void)slots.note_run(7, 1ms);
    return slots.limit();
  };
  CHECK(runs(20) == 4);
  REQUIRE(slots.note_shortage());
  CHECK(slots.limit() == 1);
  CHECK(runs(15) == 1);
  CHECK(runs(1) == 2);
  CHECK(runs(15) == 2);
  REQUIRE(slots.note_shortage());  // the window begins again
  CHECK(runs(15) == 1);
  CHECK(runs(1) == 2);
  CHECK(runs(32) == 4);
  CHECK(runs(160) == 4);
  (void)member->give_back(job);
  member->leave();
}
