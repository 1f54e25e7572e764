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
  const auto windows = [&](int count, double stretch) {
    for (int i = 0; i < 16 * count; ++i)
      if (slots.note_run(stretch)) member->serve();
    return slots.limit();
  };
  CHECK(windows(3, 1) == 4);
  CHECK(windows(1, 2) == 3);
  CHECK(windows(1, 2) == 2);
  CHECK(windows(9, 2) == 1);   // never less
  CHECK(windows(40, 1) == 1);  // no request waits
  member->wait(Instant(1ns));
  CHECK(windows(1, 1) == 2);
  CHECK(taker.served == 1);
  member->wait(Instant(1ns));
  CHECK(windows(10, 1) == 4);  // never more than the limit
  CHECK(windows(1, 3) == 3);
  CHECK(windows(16, 1) == 3);  // it stays calm
  CHECK(windows(1, 1) == 4);
  CHECK(windows(3, 10) == 1);
  CHECK(windows(300, 1) == 4);
  member->leave();
  CHECK(slots.limit() == 8);
}

TEST_CASE("a job without a known stretch does not count", "[silicon][slots]") {
  Taker taker;
  silicon::Slots slots(4);
  const auto member = slots.join(taker, {.follows_load = true});
  for (int i = 0; i < 15; ++i) (void)slots.note_run(2);
  for (int i = 0; i < 16; ++i) (void)slots.note_run(0);
  CHECK(slots.limit() == 4);
  (void)slots.note_run(2);
  CHECK(slots.limit() == 3);
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
    for (int i = 0; i < count; ++i) (void)slots.note_run(1);
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
