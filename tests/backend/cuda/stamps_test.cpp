// Stamps as events with a time: the calls that they make, and their failures.
#include "device/stamps.hpp"

#include <optional>

#include "backend/cuda/rig.hpp"

namespace wye::test {
namespace {

/// A device of the stand-in with a lane and a buffer.
struct StampRig {
  StandIn stand_in;
  std::shared_ptr<DeviceBase> device = good(discover().at(0).adapter->open());
  std::shared_ptr<BufferBase> a =
      good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
  Lane lane{good(device->create_lane())};

  void stamp_fill(const std::shared_ptr<StampsBase>& stamps) {
    lane.stamp_begin(stamps);
    lane.fill(range(a), 1);
    lane.stamp_end(stamps);
    lane.submit();
  }
};

}  // namespace

TEST_CASE("stamps are two events that are used again, and other submissions record one event", "[cuda]") {
  StampRig rig;
  auto recorded = [&, before = rig.stand_in.calls("cuEventRecord")]() mutable {
    const long now = rig.stand_in.calls("cuEventRecord");
    return now - std::exchange(before, now);
  };
  rig.stamp_fill(nullptr);
  REQUIRE(rig.lane.wait(Instant::max()));
  CHECK(recorded() == 1);  // the end of the submission
  for (int round = 0; round < 5; ++round) {
    const long events = rig.stand_in.calls("cuEventCreate");
    const auto first = good(rig.device->create_stamps()), second = good(rig.device->create_stamps());
    CHECK(recorded() == (round == 0 ? 1 : 0));  // the origin of the clock
    CHECK(rig.stand_in.calls("cuEventCreate") == events + (round == 0 ? 5 : 0));
    rig.stamp_fill(first);
    rig.stamp_fill(second);
    REQUIRE(rig.lane.wait(Instant::max()));
    CHECK(recorded() == 6);
    const long asked = rig.stand_in.calls("cuEventElapsedTime");
    CHECK(first->read());
    CHECK(second->read());
    CHECK(second->read());
    CHECK(rig.stand_in.calls("cuEventElapsedTime") == asked + 4);
  }
}

TEST_CASE("a stamped sequence is one graph, with new stamps a new one", "[cuda]") {
  if (!has_kernels()) return;
  StampRig rig;
  const auto add =
      good(rig.device->create_executable(good(test_kernel("add", *rig.device, Twin::addresses))));
  const auto first = good(rig.device->create_stamps()), second = good(rig.device->create_stamps());
  SequenceState sequence(rig.device);
  const auto record = [&](const std::shared_ptr<StampsBase>& stamps) {
    Recording& recording = sequence.open();
    recording.clear();
    recording.fill(range(rig.a), 1);
    recording.stamp_begin(stamps);
    recording.dispatch(add, arguments_of(rig.a, Word{2}), length);
    recording.stamp_end(stamps);
  };
  record(first);
  Duration last{};
  for (int i = 0; i < 5; ++i) {
    rig.lane.submit(sequence);
    CHECK(sequence.open().set(2, 1, argument(Word{3})));
    REQUIRE(rig.lane.wait(Instant::max()));
    const auto times = first->read();
    REQUIRE(times);
    CHECK(times->begin > last);
    last = times->end;
  }
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 1);
  CHECK(rig.stand_in.calls("cuGraphLaunch") == 5);
  CHECK(rig.stand_in.calls("cuLaunchKernel") == 0);
  record(second);
  rig.lane.submit(sequence);
  REQUIRE(rig.lane.wait(Instant::max()));
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 2);
  REQUIRE(second->read());
  CHECK(second->read()->begin >= last);
  CHECK(first->read()->end == last);
}

TEST_CASE("a kernel has the duration that its script gives it", "[cuda]") {
  if (!has_kernels()) return;
  StampRig rig;
  const auto add =
      good(rig.device->create_executable(good(test_kernel("add", *rig.device, Twin::addresses))));
  const auto stamps = good(rig.device->create_stamps());
  rig.stand_in.latency("kernel", std::chrono::milliseconds(20));
  rig.lane.stamp_begin(stamps);
  rig.lane.dispatch(add, arguments_of(rig.a, Word{2}), length);
  rig.lane.stamp_end(stamps);
  REQUIRE(rig.lane.wait(Instant::max()));
  REQUIRE(stamps->read());
  CHECK(stamps->read()->duration() >= std::chrono::milliseconds(19));
}

TEST_CASE("a driver that cannot create stamps gives an error, and later ones may be created", "[cuda]") {
  for (const auto& [function, calls] :
       {std::pair{"cuEventCreate", 3}, std::pair{"cuEventRecord", 1}, std::pair{"cuEventSynchronize", 1}})
    for (long n = 1; n <= calls; ++n) {
      INFO(function << ", call " << n);
      StampRig rig;
      rig.stand_in.fail(function, n, CUDA_ERROR_OUT_OF_MEMORY);
      const auto failed = rig.device->create_stamps();
      REQUIRE_FALSE(failed);
      CHECK(failed.error() == Errc::out_of_memory);
      REQUIRE(failed.error().native());
      CHECK(failed.error().native()->api == function);
      CHECK(rig.device->create_stamps());
    }
}

TEST_CASE("a lane whose driver refuses a stamp ran no command and stays usable", "[cuda]") {
  StampRig rig;
  const auto stamps = good(rig.device->create_stamps());
  auto base = good(rig.device->create_lane());
  auto recording = std::make_shared<Recording>();
  recording->stamp_begin(stamps);
  recording->fill(range(rig.a), 1);
  recording->stamp_end(stamps);
  recording->close();
  rig.stand_in.fail("cuEventRecord", 1, CUDA_ERROR_OUT_OF_MEMORY);
  const auto refused = base->submit({.recording = recording, .waits = {}, .stop = {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::out_of_memory);
  const auto taken = base->submit({.recording = recording, .waits = {}, .stop = {}});
  REQUIRE(taken);  // no command of the refused submission ran
  CHECK(base->wait(*taken, Instant::max()));
}

TEST_CASE("a driver without a time, and a lost device, give none", "[cuda]") {
  StampRig rig;
  const auto stamps = good(rig.device->create_stamps()), known = good(rig.device->create_stamps());
  rig.stamp_fill(known);
  rig.stamp_fill(stamps);
  REQUIRE(rig.lane.wait(Instant::max()));
  CHECK(known->read());
  for (const long call : {1, 2}) {
    rig.stand_in.fail("cuEventElapsedTime", call, CUDA_ERROR_NOT_READY);
    CHECK_FALSE(stamps->read());
  }
  CHECK_FALSE(rig.device->lost());
  rig.stand_in.fail("cuEventElapsedTime", 1, CUDA_ERROR_LAUNCH_FAILED);
  CHECK_FALSE(stamps->read());
  REQUIRE(rig.device->lost());
  CHECK(rig.device->create_stamps().error() == Errc::device_lost);
  const long calls = rig.stand_in.calls("cuEventElapsedTime");
  CHECK_FALSE(stamps->read());
  CHECK(known->read());
  CHECK(rig.stand_in.calls("cuEventElapsedTime") == calls);
}

}  // namespace wye::test
