#include "device/pending_submissions.hpp"

#include <chrono>

#include "base/process.hpp"
#include "base/worker.hpp"
#include "device/batches.hpp"
#include "device/doubles.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

class ScriptedTimeline final : public ScheduledTimeline {
 public:
  ScriptedTimeline(std::shared_ptr<DeviceBase> device, PendingSubmissions& pending, SignaledBy by)
      : ScheduledTimeline(std::move(device), pending, by) {}
  ~ScriptedTimeline() override { call_seen(); }
  std::uint64_t reached() noexcept override {
    raise(driver);
    return seen();
  }
  Result<void> wait(std::uint64_t value, Instant until) override {
    if (base::seen_before_parking([&] { return reached() >= value; }, until - Clock::steady().now()))
      return {};
    return Error(Errc::timed_out, "Not yet.");
  }
  std::atomic<std::uint64_t> driver{0};  ///< what the driver has completed
};

class GivenLane final : public SubmittingLane {
 public:
  GivenLane(const std::shared_ptr<DeviceBase>& device, PendingSubmissions& pending)
      : timeline(std::make_shared<ScriptedTimeline>(device, pending, ScheduledTimeline::SignaledBy::lane)) {}
  Result<void> submit_to_driver(PendingSubmission& submission) override {
    if (refuse) return *std::exchange(refuse, std::nullopt);
    given.push_back(submission.value);
    return {};
  }
  ScheduledTimeline& lane_timeline() const noexcept override { return *timeline; }
  std::shared_ptr<ScriptedTimeline> timeline;
  std::vector<std::uint64_t> given;
  std::optional<Error> refuse;
};

struct PendingFixture {
  explicit PendingFixture(TimelineWaiter::Sleep sleep = TimelineWaiter::Sleep::in_driver)
      : waiter("wye-test-wait", sleep) {}
  std::shared_ptr<ScriptedTimeline> timeline(ScheduledTimeline::SignaledBy by) {
    return std::make_shared<ScriptedTimeline>(device, pending, by);
  }
  std::shared_ptr<DeviceBase> device = null_device();
  TimelineWaiter waiter;
  PendingSubmissions pending{*device, waiter};
};

}  // namespace

TEST_CASE("a submission is pending until all values that it waits for are submitted", "[device]") {
  PendingFixture f;
  const auto gate = f.timeline(ScheduledTimeline::SignaledBy::host);
  GivenLane a(f.device, f.pending), b(f.device, f.pending);
  PendingSubmission first{.value = 1, .waits = {{gate, 2}}}, second{.value = 2, .waits = {}};
  PendingSubmission last{.value = 1, .waits = {{a.timeline, 2}}};
  CHECK(f.pending.ready(a, {}).value());
  CHECK_FALSE(f.pending.ready(a, first.waits).value());
  REQUIRE(f.pending.add(b, last));
  REQUIRE(f.pending.add(a, first));
  CHECK_FALSE(f.pending.ready(a, {}).value());  // it comes after the first one
  REQUIRE(f.pending.add(a, second));
  REQUIRE(gate->signal(1));
  CHECK(a.given.empty());
  REQUIRE(gate->signal(2));
  CHECK(a.given == std::vector<std::uint64_t>{1, 2});
  CHECK(b.given == std::vector<std::uint64_t>{1});
  CHECK(a.timeline->scheduled() == 2);
  CHECK(f.pending.ready(a, {}).value());
  f.pending.submitted(a, 3);
  CHECK(a.timeline->scheduled() == 3);
  CHECK(gate->signal(2).error() == Errc::invalid_argument);
  CHECK(a.timeline->signal(9).error() == Errc::invalid_argument);
}

TEST_CASE("a submission that the driver refuses fails its lane and the lanes that wait for it", "[device]") {
  PendingFixture f;
  const auto gate = f.timeline(ScheduledTimeline::SignaledBy::host);
  GivenLane a(f.device, f.pending), b(f.device, f.pending), c(f.device, f.pending);
  PendingSubmission first{.value = 1, .waits = {{gate, 1}}}, second{.value = 2, .waits = {}};
  PendingSubmission follower{.value = 1, .waits = {{a.timeline, 1}}};
  PendingSubmission bystander{.value = 1, .waits = {{gate, 1}}};
  a.refuse = Error(Errc::out_of_memory, "No.");
  REQUIRE(f.pending.add(a, first));
  REQUIRE(f.pending.add(a, second));
  REQUIRE(f.pending.add(b, follower));
  REQUIRE(f.pending.add(c, bystander));
  REQUIRE(gate->signal(1));
  CHECK(a.given.empty());
  CHECK(b.given.empty());
  CHECK(c.given == std::vector<std::uint64_t>{1});
  for (GivenLane* lane : {&a, &b}) {
    CHECK(f.pending.ready(*lane, {}).error() == Errc::out_of_memory);
    CHECK(f.pending.wait_scheduled(*lane->timeline, 1, Instant::max()).error() == Errc::out_of_memory);
  }
  CHECK(f.pending.add(a, second).error() == Errc::out_of_memory);
  CHECK(a.timeline->is_known(1));
  CHECK(b.timeline->is_known(1));
  CHECK_FALSE(c.timeline->is_known(1));  // submitted, and not completed
  c.timeline->driver = 1;
  CHECK(c.timeline->is_known(1));
}

TEST_CASE("a lane that is closed drops its pending submissions and fails lanes that wait for them",
          "[device]") {
  PendingFixture f;
  const auto gate = f.timeline(ScheduledTimeline::SignaledBy::host);
  GivenLane a(f.device, f.pending), b(f.device, f.pending);
  PendingSubmission first{.value = 1, .waits = {{gate, 1}}}, follower{.value = 1, .waits = {{a.timeline, 1}}};
  REQUIRE(f.pending.add(a, first));
  REQUIRE(f.pending.add(b, follower));
  CHECK(f.pending.wait_scheduled(*a.timeline, 1, Instant::min()).error() == Errc::timed_out);
  f.pending.close(a);
  REQUIRE(gate->signal(1));
  CHECK(a.given.empty());
  CHECK(f.pending.wait_scheduled(*a.timeline, 1, Instant::max()).error() == Errc::closed);
  CHECK(f.pending.ready(b, {}).error() == Errc::closed);
}

TEST_CASE("the waiter calls back for completed values of many lanes on one thread", "[device]") {
  for (const auto sleep : {TimelineWaiter::Sleep::in_driver, TimelineWaiter::Sleep::between_polls}) {
    PendingFixture f(sleep);
    std::vector<std::unique_ptr<GivenLane>> lanes;
    std::atomic<int> called{0}, failed{0};
    const int before = base::Worker::alive();
    const TimelineCallback note = [&](const Error* failure) { ++(failure ? failed : called); };
    for (int i = 0; i < 5; ++i) {
      lanes.push_back(std::make_unique<GivenLane>(f.device, f.pending));
      for (std::uint64_t value = 1; value <= 20; ++value) {
        REQUIRE(lanes.back()->timeline->when(value, note));
        if (value <= 10) f.pending.submitted(*lanes.back(), value);
      }
    }
    CHECK(base::Worker::alive() == before + 1);
    CHECK(called == 0);
    for (const auto& lane : lanes) lane->timeline->driver = 7;
    CHECK(base::seen_before_parking([&] { return called == 35; }, 1min));
    for (const auto& lane : lanes) f.pending.close(*lane);
    for (const auto& lane : lanes) lane->timeline->driver = 10;
    CHECK(base::seen_before_parking([&] { return called == 50 && failed == 50; }, 1min));
    CHECK(called + failed == 100);
    lanes.clear();
    f.waiter.end();
    CHECK(base::Worker::alive() == before);
  }
}

TEST_CASE("the end of a timeline calls back values seen as reached, and the others with closed", "[device]") {
  PendingFixture f;
  auto lane = std::make_unique<GivenLane>(f.device, f.pending);
  std::vector<bool> failures;
  std::mutex mutex;
  const TimelineCallback note = [&](const Error* failure) {
    const std::lock_guard lock(mutex);
    failures.push_back(failure != nullptr);
  };
  REQUIRE(lane->timeline->when(1, note));
  REQUIRE(lane->timeline->when(2, note));
  f.pending.submitted(*lane, 1);
  lane->timeline->driver = 1;
  CHECK(lane->timeline->reached() == 1);
  lane.reset();
  f.waiter.end();
  CHECK(failures == std::vector<bool>{false, true});
}

TEST_CASE("batches are reused after they have completed and their downloads are delivered", "[device]") {
  struct Batch {
    std::uint64_t value = 0;
    std::vector<int> downloads;
    struct {
      std::uint64_t held = 0;
    } staging;
  };
  Batches<Batch> batches;
  int made = 0, retired = 0;
  const auto make = [&]() -> Result<std::unique_ptr<Batch>> {
    ++made;
    return std::make_unique<Batch>();
  };
  const auto retire = [&](Batch& batch) { batch.staging.held = 0, ++retired; };
  for (std::uint64_t value = 1; value <= 3; ++value) {
    Batch& batch = *batches.take(make).value();
    batch.value = value;
    batch.staging.held = 10;
    if (value == 1) batch.downloads.push_back(1);
    batches.start(batch);
  }
  CHECK(made == 3);
  CHECK(batches.in_flight().size() == 3);
  REQUIRE(batches.first_with_staging());
  CHECK(batches.first_with_staging()->value == 2);
  batches.collect(2, retire);
  CHECK(retired == 1);
  CHECK(batches.has_idle());
  CHECK(batches.in_flight().front()->value == 1);
  batches.in_flight().front()->downloads.clear();
  batches.collect(2, retire);
  CHECK(batches.in_flight().size() == 1);
  batches.give_back(*batches.take(make).value());
  CHECK(made == 3);
  CHECK_FALSE(Batches<Batch>().take(
      []() -> Result<std::unique_ptr<Batch>> { return Error(Errc::out_of_memory, "No."); }));
}

}  // namespace wye::test
