// Promises between two devices: kept by the device, or by the host if the device cannot.
#include "device/pending_signals.hpp"

#include "device/doubles.hpp"
#include "device/lane.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

/// A timeline that two have.
class Shared final : public Timeline {
 public:
  explicit Shared(const DeviceBase* owner) : of_(owner), pending_signals_(*this) {}
  std::uint64_t reached() noexcept override { return of_.reached(); }
  bool is_known(std::uint64_t value) noexcept override { return of_.is_known(value); }
  Result<void> wait(std::uint64_t value, Instant until) override { return of_.wait(value, until); }
  Result<void> signal(std::uint64_t value) override {
    ++signals;
    if (refuse) return *std::exchange(refuse, std::nullopt);
    return of_.signal(value);
  }
  const DeviceBase* owner() const noexcept override { return of_.owner(); }
  bool is_foreign() const noexcept override { return true; }
  PendingSignals* pending_signals() noexcept override { return &pending_signals_; }
  int signals = 0;
  std::optional<Error> refuse;

 private:
  HostTimeline of_;
  PendingSignals pending_signals_;
};

struct PendingSignalsFixture {
  std::shared_ptr<DeviceBase> device = null_device();
  std::shared_ptr<Shared> shared = std::make_shared<Shared>(device.get());
  std::shared_ptr<HostTimeline> giver = std::make_shared<HostTimeline>(device.get());
  PendingSignals& signals = *shared->pending_signals();
  const Error lost{Errc::device_lost, "The other one is lost."};
};

}  // namespace

TEST_CASE("a signal is pending until its lane makes it, and leaves no failure", "[device]") {
  PendingSignalsFixture f;
  CHECK_FALSE(f.signals.any_pending());
  f.signals.add(1, {f.giver, 10});
  CHECK(f.signals.any_pending());
  REQUIRE(f.giver->signal(10));
  CHECK_FALSE(f.signals.any_pending());
  CHECK_FALSE(f.signals.failure_of(1));
  CHECK(f.shared->signals == 0);
}

TEST_CASE("the host makes a signal of a lost device once, and keeps the failure", "[device]") {
  PendingSignalsFixture f;
  f.signals.add(1, {f.giver, 10});
  f.signals.add(2, {f.giver, 11});
  REQUIRE(f.giver->signal(10));
  f.giver->fail(f.lost);
  CHECK_FALSE(f.signals.any_pending());
  CHECK_FALSE(f.signals.any_pending());
  CHECK(f.shared->reached() == 2);
  CHECK(f.shared->signals == 1);
  CHECK_FALSE(f.signals.failure_of(1));
  REQUIRE(f.signals.failure_of(2));
  CHECK(*f.signals.failure_of(2) == Errc::device_lost);
}

TEST_CASE("a signal that the host cannot make is made at the next poll", "[device]") {
  PendingSignalsFixture f;
  f.signals.add(1, {f.giver, 10});
  f.giver->fail(f.lost);
  f.shared->refuse = Error(Errc::out_of_memory, "Not now.");
  CHECK(f.signals.any_pending());
  CHECK(f.shared->reached() == 0);
  CHECK_FALSE(f.signals.any_pending());
  CHECK(f.shared->reached() == 1);
}

TEST_CASE("completed signals do not accumulate without waiters", "[device]") {
  PendingSignalsFixture f;
  for (std::uint64_t turn = 1; turn <= 1000; ++turn) {
    f.signals.add(turn, {f.giver, turn});
    REQUIRE(f.giver->signal(turn));
  }
  CHECK(f.giver.use_count() < 40);
}

TEST_CASE("a wait for a device has short sleeps only while a signal is pending", "[device]") {
  PendingSignalsFixture f;
  constexpr Instant for_ever = Instant::max();
  CHECK(f.device->next_check(for_ever) == for_ever);
  f.device->note_shared(f.shared);
  CHECK(f.device->next_check(for_ever) == for_ever);
  f.signals.add(1, {f.giver, 10});
  CHECK(f.device->next_check(for_ever) < Clock::steady().now() + 1s);
  CHECK(f.device->next_check(Instant::min()) == Instant::min());
  f.giver->fail(f.lost);
  CHECK(f.device->next_check(for_ever) == for_ever);
  CHECK(f.shared->reached() == 1);
  f.shared.reset();
  CHECK(f.device->next_check(for_ever) == for_ever);
}

TEST_CASE("a lane that continues after a failed signal returns the failure", "[device]") {
  PendingSignalsFixture f;
  Lane lane(std::make_unique<ScriptedLane>(f.device));
  const auto buffer = buffer_of(*f.device, 64_B);
  f.signals.add(1, {f.giver, 10});
  f.signals.add(2, {f.giver, 11});
  REQUIRE(f.giver->signal(10));
  lane.wait_for({f.shared, 1});
  lane.acquire(range(buffer));
  REQUIRE(lane.wait(Instant::max()));
  lane.wait_for({f.shared, 2});
  lane.acquire(range(buffer));
  f.giver->fail(f.lost);
  CHECK_FALSE(f.signals.any_pending());
  for (int i = 0; i < 2; ++i) {
    const auto waited = lane.wait(Instant::max());
    REQUIRE_FALSE(waited);
    CHECK(waited.error() == Errc::device_lost);
    CHECK(waited.error().sentence() == "The other one is lost.");
  }
}

}  // namespace wye::test
