#include "device/lane.hpp"

#include <set>

#include "device/doubles.hpp"
#include "device/stamps.hpp"

namespace wye::test {
namespace {

struct LaneFixture {
  std::shared_ptr<DeviceBase> device = null_device();
  std::shared_ptr<BufferBase> buffer = buffer_of(*device, 64_B);
  ScriptedLane* base = new ScriptedLane(device);
  Lane lane{std::unique_ptr<LaneBase>(base)};
};

}  // namespace

TEST_CASE("a lane submits its recording once", "[device]") {
  LaneFixture f;
  f.lane.submit();
  CHECK(f.base->given.empty());
  f.lane.fill(range(f.buffer), 1);
  f.lane.fill(range(f.buffer), 2);
  const TimelinePoint point = f.lane.submit();
  CHECK(point.value == 1);
  CHECK(point.timeline == f.base->timeline());
  f.lane.submit();
  REQUIRE(f.base->given.size() == 1);
  CHECK(f.base->given[0].commands == 2);
  CHECK(f.base->given[0].recording->closed());
  CHECK_FALSE(f.base->given[0].caller_waits);
  f.lane.fill(range(f.buffer), 3);
  CHECK_FALSE(f.lane.idle());
  REQUIRE(f.lane.wait(Instant::max()));
  REQUIRE(f.base->given.size() == 2);
  CHECK(f.base->given[1].caller_waits);
  CHECK(f.lane.idle());
}

TEST_CASE("commands after a wait_for are a separate submission", "[device]") {
  LaneFixture f;
  const auto timeline = f.device->create_timeline().value();
  f.lane.fill(range(f.buffer), 1);
  f.lane.wait_for({timeline, 5});
  f.lane.wait_for({timeline, 6});
  f.lane.fill(range(f.buffer), 2);
  f.lane.submit();
  f.lane.fill(range(f.buffer), 3);
  f.lane.submit();
  REQUIRE(f.base->given.size() == 3);
  CHECK(f.base->given[0].waits.empty());
  CHECK(f.base->given[1].waits == std::vector<std::uint64_t>{5, 6});
  CHECK(f.base->given[2].waits.empty());
}

TEST_CASE("a lane notes the submission of stamps, and a refused submission leaves no times", "[device]") {
  LaneFixture f;
  const auto stamps = f.device->create_stamps().value();
  const auto record = [&] {
    f.lane.stamp_begin(stamps);
    f.lane.fill(range(f.buffer), 1);
    f.lane.stamp_end(stamps);
    f.lane.submit();
  };
  record();
  CHECK_FALSE(stamps->read());
  f.base->finish(1);
  CHECK(stamps->read());
  record();
  CHECK_FALSE(stamps->read());
  f.base->finish(1);
  CHECK(stamps->read());
  f.base->refuse = Error(Errc::out_of_memory, "No room.");
  record();
  CHECK_FALSE(stamps->read());
  f.base->reached->fail(Error(Errc::closed, "It ends."));
  CHECK_FALSE(stamps->read());
}

TEST_CASE("a device without a clock creates no stamps", "[device]") {
  class Clockless final : public DeviceBase {
   public:
    Clockless() : DeviceBase(null_device()->info()) {}
    std::span<const std::string_view> languages() const noexcept override { return {}; }
    MemoryInfo memory() override { return {}; }
    const Error* ended_by() const noexcept override { return nullptr; }
    Result<std::shared_ptr<BufferBase>> create_buffer(const BufferRequest&) override { return no(); }
    Result<std::shared_ptr<ExecutableBase>> create_executable(const Artefact&) override { return no(); }
    Result<std::unique_ptr<LaneBase>> create_lane(const LaneOptions&) override { return no(); }
    Result<std::shared_ptr<Timeline>> create_timeline() override { return no(); }

   private:
    static Error no() { return Error(Errc::unsupported, "It creates nothing."); }
  };
  const auto stamps = std::make_shared<Clockless>()->create_stamps();
  REQUIRE_FALSE(stamps);
  CHECK(stamps.error() == Errc::unsupported);
  CHECK(stamps.error().sentence() == "Device 'null:0' has no clock for stamps.");
}

TEST_CASE("recordings are reused after their submissions have completed", "[device]") {
  LaneFixture f;
  std::set<const Recording*> seen;
  for (int i = 0; i < 100; ++i) {
    f.lane.fill(range(f.buffer), 1);
    f.lane.submit();
    seen.insert(f.base->given.back().recording.get());
    if (i >= 3) f.base->finish(1);  // four are in flight at a time
  }
  CHECK(seen.size() == 4);
  f.base->finish(3);
  REQUIRE(f.lane.wait(Instant::max()));
  CHECK(f.buffer.use_count() == 1);  // nothing that is done holds a buffer
}

TEST_CASE("a recording that is still held is not reused", "[device]") {
  LaneFixture f;
  f.lane.fill(range(f.buffer), 1);
  f.lane.submit();
  const auto held = f.base->given[0].recording;
  REQUIRE(f.lane.wait(Instant::max()));
  f.lane.fill(range(f.buffer), 2);
  f.lane.submit();
  CHECK(f.base->given[1].recording != held);
  CHECK(held->commands().size() == 1);
}

TEST_CASE("a lane returns its first failure for ever", "[device]") {
  LaneFixture f;
  SECTION("a refused submission") {
    f.base->refuse = Error(Errc::unsupported, "Too wide.");
    f.lane.fill(range(f.buffer), 1);
    f.lane.submit();
    CHECK(f.base->given.empty());
  }
  SECTION("a failed wait") {
    f.lane.fill(range(f.buffer), 1);
    f.base->answer = Error(Errc::unsupported, "Too wide.");
    (void)f.lane.wait(Instant::max());
    f.base->answer = Error(Errc::device_lost, "Gone.");
  }
  SECTION("a caller's") { f.lane.fail(Error(Errc::unsupported, "Too wide.")); }
  f.lane.fail(Error(Errc::io, "Later."));
  const std::size_t before = f.base->given.size();
  f.lane.fill(range(f.buffer), 2);
  f.lane.submit();
  CHECK(f.base->given.size() == before);
  for (int i = 0; i < 2; ++i) {
    auto waited = f.lane.wait(Instant::max());
    REQUIRE_FALSE(waited);
    CHECK(waited.error().sentence() == "Too wide.");
  }
  REQUIRE(f.lane.failure());
  CHECK(f.lane.failure()->sentence() == "Too wide.");
}

TEST_CASE("a wait that times out does not fail the lane", "[device]") {
  LaneFixture f;
  f.lane.fill(range(f.buffer), 1);
  f.base->answer = Error(Errc::timed_out, "Not yet.");
  auto waited = f.lane.wait(Instant::min());
  REQUIRE_FALSE(waited);
  CHECK(waited.error() == Errc::timed_out);
  CHECK_FALSE(f.lane.failure());
  f.base->answer.reset();
  CHECK(f.lane.wait(Instant::max()));
  CHECK(f.base->given.size() == 1);
}

TEST_CASE("a lane with a failure still waits for its work in flight", "[device]") {
  LaneFixture f;
  f.lane.fill(range(f.buffer), 1);
  f.lane.submit();
  f.lane.fail(Error(Errc::io, "No ink."));
  f.base->answer = Error(Errc::timed_out, "Not yet.");
  CHECK(f.lane.wait(Instant::min()).error() == Errc::timed_out);
  f.base->answer.reset();
  CHECK(f.lane.wait(Instant::max()).error() == Errc::io);
}

TEST_CASE("a lane discards what its user has left behind, and keeps its work in flight", "[device]") {
  LaneFixture f;
  f.lane.fill(range(f.buffer), 1);
  f.lane.discard();
  CHECK(f.base->abandoned == 0);  // nothing was submitted
  f.lane.submit();
  CHECK(f.base->given.empty());
  f.lane.fill(range(f.buffer), 2);
  f.lane.submit();
  f.lane.wait_for({f.base->timeline(), 1});
  f.lane.discard();
  CHECK(f.base->abandoned == 1);
  CHECK_FALSE(f.lane.idle());
  f.lane.fill(range(f.buffer), 3);
  CHECK(f.lane.wait(Instant::max()));
  REQUIRE(f.base->given.size() == 2);
  CHECK(f.base->given[1].waits.empty());
  f.lane.discard();
  CHECK(f.base->abandoned == 1);  // a successful wait has written all downloads
}

}  // namespace wye::test
