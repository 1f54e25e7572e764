// The effects of faults on other lanes, and waits.
#include <array>
#include <atomic>
#include <ctime>
#include <deque>
#include <thread>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_timeline.hpp"
#include "backend/cuda/rig.hpp"
#include "base/gate.hpp"
#include "base/worker.hpp"
#include "device/native.hpp"
#include "support/await.hpp"
#include "support/thread.hpp"

namespace wye::test {

TEST_CASE("no call changes the caller's current context", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  int theirs = 0;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  void* ours = nullptr;
  const auto driver = good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA));
  CUcontext primary = nullptr;
  REQUIRE(driver->cu.DevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  ours = primary;
  for (const std::vector<void*>& before :
       {std::vector<void*>{}, std::vector<void*>{&theirs}, std::vector<void*>{&theirs, ours}}) {
    for (void* context : before) stand_in.push(context);
    std::size_t checks = 0;
    const Outcome outcome = scenario(found[0].adapter, [&] {
      ++checks;
      CHECK(stand_in.depth() == static_cast<long>(before.size()));
      CHECK(stand_in.current() == (before.empty() ? nullptr : before.back()));
    });
    CHECK_FALSE(outcome.error);
    CHECK(outcome.out == expected());
    CHECK(checks > 10);
    CHECK(stand_in.depth() == static_cast<long>(before.size()));
    for (std::size_t i = 0; i < before.size(); ++i) stand_in.pop();
  }
  CHECK(driver->cu.DevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(stand_in.alive()["contexts"] == 0);
}

TEST_CASE("a fatal error ends the device at once for all lanes, and CUDA for this process", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto gate = good(device->create_timeline());
  const auto buffer =
      good(device->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  Lane parked(good(device->create_lane())), failing(good(device->create_lane()));
  parked.wait_for({gate, 1});
  parked.fill(range(buffer), 1);
  const TimelinePoint point = parked.submit();
  std::atomic<int> told{0};
  const TimelineCallback note = [&](const Error* failure) {
    told += failure && *failure == Errc::device_lost ? 1 : 100;
  };
  CHECK(point.timeline->when(point.value, note));
  CHECK(gate->when(2, note));
  stand_in.fail("cuMemsetD32Async", 1, 700);
  failing.fill(range(buffer), 2);
  failing.submit();
  for (Lane* lane : {&failing, &parked}) {
    auto waited = lane->wait(Instant::max());
    REQUIRE_FALSE(waited);
    CHECK(waited.error() == Errc::device_lost);
    REQUIRE(waited.error().native());
    CHECK(waited.error().native()->number == 700);
  }
  REQUIRE(device->lost());
  CHECK(gate->signal(1).error() == Errc::device_lost);
  CHECK(gate->when(1, note));
  (void)base::seen_before_parking([&] { return told == 3; }, std::chrono::seconds(10));
  CHECK(told == 3);
  CHECK(device->create_buffer({.bytes = 4_B, .use = MemoryUse::device, .account = nullptr}).error() ==
        Errc::device_lost);
  auto again = found[0].adapter->open();
  REQUIRE_FALSE(again);
  CHECK(again.error() == Errc::unavailable);
  CHECK(again.error().sentence() ==
        "Device 'cuda:0' cannot be opened. An error has disabled CUDA in this process: cuMemsetD32Async -> "
        "CUDA_ERROR_ILLEGAL_ADDRESS (700).");
  const auto later = discover();
  REQUIRE(later.size() == 1);
  CHECK_FALSE(later[0].info.usable);
  CHECK(later[0].info.reason ==
        "An error has disabled CUDA in this process: cuMemsetD32Async -> CUDA_ERROR_ILLEGAL_ADDRESS (700).");
}

namespace {

/// A stream of the application that is blocked until it is opened, in a context that the
/// application keeps.
class Barrier {
 public:
  explicit Barrier(const StandIn& stand_in) : driver_(good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA))) {
    REQUIRE(driver_->cu.DevicePrimaryCtxRetain(&context_, 0) == CUDA_SUCCESS);
    REQUIRE(driver_->cu.CtxPushCurrent(context_) == CUDA_SUCCESS);
    REQUIRE(driver_->cu.StreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    stand_in.enqueue(
        stream_, [](void* open) { static_cast<std::atomic<bool>*>(open)->wait(false); }, &open_);
    CUcontext popped = nullptr;
    REQUIRE(driver_->cu.CtxPopCurrent(&popped) == CUDA_SUCCESS);
  }
  Barrier(const Barrier&) = delete;
  ~Barrier() {
    open();
    (void)driver_->cu.DevicePrimaryCtxRelease(0);
  }
  void open() {
    open_ = true;
    open_.notify_all();
  }
  /// The point that is reached when the stream is open.
  TimelinePoint point(DeviceBase& device) const {
    NativePoint native{.backend = "cuda"};
    native.queue = reinterpret_cast<std::uintptr_t>(stream_);
    return {good(device.native_interop()->adopt_timeline(native)), 1};
  }

 private:
  std::shared_ptr<cuda::CudaDriver> driver_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::atomic<bool> open_{false};
};

Instant in_a_minute() { return Clock::steady().now() + std::chrono::seconds(60); }

/// Holds the event of a lane's point. The event is not reused while it is held.
cuda::Mark mark_of(const TimelinePoint& point) {
  return static_cast<cuda::CudaTimeline&>(*point.timeline).mark_of(point.value);
}
bool has_come(DeviceBase& device, const cuda::Mark& mark) {
  auto& of = static_cast<cuda::CudaDevice&>(device);
  const cuda::CurrentContext current(of);
  return current && of.cu.EventQuery(mark.event->handle) == CUDA_SUCCESS;
}

}  // namespace

TEST_CASE("a wait for a reached point does not sleep, with and without a deadline", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
  const int threads = base::Worker::alive();
  Lane lane(good(device->create_lane()));
  const long slept = stand_in.calls("cuEventSynchronize");
  for (const Instant until : {Instant::max(), in_a_minute(), Instant::min()}) {
    lane.fill(range(buffer), 1);
    const auto mark = mark_of(lane.submit());
    CHECK(test::becomes_true([&] { return has_come(*device, mark); }));
    CHECK(lane.wait(until));
  }
  CHECK(stand_in.calls("cuEventSynchronize") == slept);
  CHECK(base::Worker::alive() == threads);
}

TEST_CASE("a lane reuses its events, except those still in use", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
  Lane lane(good(device->create_lane()));
  Barrier barrier(stand_in);
  lane.fill(range(buffer), 1);
  const auto first = mark_of(lane.submit());
  REQUIRE(lane.wait(Instant::max()));
  lane.wait_for(barrier.point(*device));
  lane.fill(range(buffer), 2);
  const auto second = mark_of(lane.submit());
  CHECK(has_come(*device, first));
  CHECK_FALSE(has_come(*device, second));
  barrier.open();
  REQUIRE(lane.wait(Instant::max()));
  const long made = stand_in.calls("cuEventCreate");
  for (Word i = 0; i < 20; ++i) {
    lane.fill(range(buffer), i);
    REQUIRE(lane.wait(i % 2 == 0 ? Instant::max() : in_a_minute()));
  }
  CHECK(stand_in.calls("cuEventCreate") <= made + 1);
}

TEST_CASE("a wait for an early point does not wait for a later one", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto large = good(device->create_buffer({.bytes = 400_B, .account = nullptr})),
             small = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
  Barrier barrier(stand_in);
  Lane slow(good(device->create_lane())), quick(good(device->create_lane()));
  slow.wait_for(barrier.point(*device));
  slow.fill(range(large), 1);
  const TimelinePoint end = slow.submit();
  const long slept = stand_in.calls("cuEventSynchronize");
  std::thread waits([&] { (void)end.timeline->wait(end.value, in_a_minute()); });
  CHECK(test::becomes_true([&] { return stand_in.calls("cuEventSynchronize") == slept + 1; }));
  quick.fill(range(small), 1);
  CHECK(quick.wait(in_a_minute()));
  CHECK(end.timeline->reached() < end.value);
  barrier.open();
  waits.join();
  CHECK(slow.wait(Instant::max()));
}

TEST_CASE("any CUDA wait keeps failing: a lane ends when its work has, and the device is well", "[cuda]") {
  for (const CUresult code : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OPERATING_SYSTEM}) {
    const StandIn stand_in;
    const auto found = discover();
    REQUIRE(found.at(0).adapter);
    const auto device = good(found[0].adapter->open());
    const auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
    Barrier barrier(stand_in);
    auto lane = std::make_unique<Lane>(good(device->create_lane()));
    lane->wait_for(barrier.point(*device));
    lane->fill(range(buffer), 1);
    const TimelinePoint end = lane->submit();
    for (const char* wait : {"cuEventSynchronize", "cuStreamSynchronize"}) stand_in.fail(wait, 0, code);
    for (const auto deadline : {std::chrono::milliseconds(0), std::chrono::milliseconds(20)})
      CHECK(end.timeline->wait(end.value, Clock::steady().now() + deadline).error() == Errc::timed_out);
    stand_in.fail("cuEventQuery", 1, code);
    CHECK(end.timeline->wait(end.value, Instant::min()).error() == Errc::timed_out);
    CHECK_FALSE(lane->idle());
    std::atomic<bool> ended{false};
    test::Thread ending([&] {
      lane.reset();
      ended = true;
    });
    ending.await_parked();
    CHECK_FALSE(ended);
    barrier.open();
    ending.join();
    CHECK_FALSE(device->lost());
    CHECK(stand_in.alive()["streams"] == 2);  // the device's and the application's
    CHECK(end.timeline->wait(end.value, Instant::max()));
  }
}

TEST_CASE("any CUDA wait keeps failing: objects in flight are kept if the driver gives no answer", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
  const std::weak_ptr<BufferBase> seen = buffer;
  std::vector<Word> out(100, poison);
  Barrier barrier(stand_in);
  {
    auto lane = std::make_unique<Lane>(good(device->create_lane()));
    lane->wait_for(barrier.point(*device));
    lane->fill(range(buffer), 1);
    lane->download(range(buffer), writable_bytes_of(out));
    const TimelinePoint end = lane->submit();
    buffer.reset();
    const auto alive = stand_in.alive();
    const auto set = [&](CUresult code) {
      for (const char* call : {"cuEventSynchronize", "cuStreamSynchronize", "cuEventQuery"})
        stand_in.fail(call, 0, code);
    };
    set(CUDA_ERROR_OUT_OF_MEMORY);
    for (const Instant until : {Instant::max(), in_a_minute()}) {
      const auto waited = end.timeline->wait(end.value, until);
      REQUIRE_FALSE(waited);
      CHECK(waited.error() == Errc::out_of_memory);
    }
    CHECK_FALSE(lane->idle());  // the driver does not answer
    const Instant begun = Clock::steady().now();
    lane.reset();
    CHECK(Clock::steady().now() - begun < std::chrono::seconds(10));
    CHECK_FALSE(device->lost());
    CHECK(stand_in.changed_since(alive) == "");
    CHECK_FALSE(seen.expired());
    set(CUDA_SUCCESS);
  }
  (void)good(device->create_lane());  // collects nothing
  CHECK_FALSE(seen.expired());
  barrier.open();
  CHECK(test::becomes_true([&] {
    (void)good(device->create_lane());  // collects it when it has ended
    return seen.expired();
  }));
  CHECK(out == std::vector<Word>(100, poison));
  CHECK_FALSE(device->lost());
}

TEST_CASE("waiters of a lane share a thread, and the smaller value comes first", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const int before = base::Worker::alive();
  std::array<std::optional<Barrier>, 3> barriers;
  Lane lane(good(device->create_lane()));
  std::array<TimelinePoint, 3> points;
  const auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
  for (std::size_t i = 0; i < points.size(); ++i) {
    lane.wait_for(barriers[i].emplace(stand_in).point(*device));
    lane.fill(range(buffer), 1);
    points[i] = lane.submit();
  }
  std::array<std::atomic<bool>, 3> ended{};
  std::deque<test::Thread> waiting;
  const auto wait_for = [&](std::size_t i) {
    waiting.emplace_back(
        [&, i] { ended[i] = points[i].timeline->wait(points[i].value, in_a_minute()).has_value(); });
  };
  const long slept = stand_in.calls("cuEventSynchronize");
  wait_for(1);
  CHECK(test::becomes_true([&] { return stand_in.calls("cuEventSynchronize") == slept + 1; }));
  wait_for(2);  // later: no thread sleeps for it yet
  waiting.back().await_parked();
  CHECK(base::Worker::alive() == before + 1);
  wait_for(0);  // sooner: no wait may take longer than needed
  CHECK(test::becomes_true([&] { return stand_in.calls("cuEventSynchronize") == slept + 2; }));
  CHECK(base::Worker::alive() == before + 2);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK_FALSE(ended[i]);
    barriers[i]->open();
    CHECK(test::becomes_true([&] { return ended[i].load(); }));
  }
  CHECK(base::Worker::alive() == before + 2);
  for (test::Thread& one : waiting) one.join();
  REQUIRE(lane.wait(Instant::max()));
}

TEST_CASE("an abandoned wait does not affect later points at its address", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  Barrier old(stand_in), now(stand_in);
  {
    const TimelinePoint gone = old.point(*device);
    CHECK_FALSE(gone.timeline->wait(gone.value, Clock::steady().now() + std::chrono::milliseconds(20)));
  }
  const TimelinePoint point = now.point(*device);  // perhaps at the address of the other point
  const long slept = stand_in.calls("cuEventSynchronize");
  std::atomic<bool> ended{false}, reached{false};
  test::Thread waits([&] {
    reached = point.timeline->wait(point.value, in_a_minute()).has_value();
    ended = true;
  });
  CHECK(test::becomes_true([&] { return stand_in.calls("cuEventSynchronize") == slept + 1; }));
  old.open();
  waits.await_parked();
  CHECK_FALSE(ended);
  now.open();
  waits.join();
  CHECK(reached);
}

TEST_CASE("a lost device that still hangs blocks neither waits nor destructors", "[cuda]") {
  const StandIn stand_in;
  const int before = base::Worker::alive();
  Barrier barrier(stand_in);
  {
    auto found = discover();
    REQUIRE(found.at(0).adapter);
    auto device = good(found[0].adapter->open());
    auto buffer = good(device->create_buffer({.bytes = 400_B, .account = nullptr}));
    auto hanging = std::make_unique<Lane>(good(device->create_lane()));
    auto ending = std::make_unique<Lane>(good(device->create_lane()));
    auto failing = std::make_unique<Lane>(good(device->create_lane()));
    for (Lane* lane : {hanging.get(), ending.get()}) {
      lane->wait_for(barrier.point(*device));
      lane->fill(range(buffer), 1);
      lane->submit();
    }
    CHECK(hanging->wait(Clock::steady().now() + std::chrono::milliseconds(20)).error() == Errc::timed_out);
    std::optional<Error> heard;
    std::thread waits([&] { heard = hanging->wait(in_a_minute()).error(); });
    std::thread ends([&] { ending.reset(); });
    CHECK(test::becomes_true([&] { return stand_in.calls("cuEventSynchronize") >= 2; }));
    stand_in.fail("cuMemsetD32Async", 1, 719);
    failing->fill(range(buffer), 2);
    failing->submit();
    waits.join();
    ends.join();
    REQUIRE(heard);
    CHECK(*heard == Errc::device_lost);
    hanging.reset();
    failing.reset();
    buffer.reset();
    device.reset();
  }
  CHECK(base::Worker::alive() > before);  // asleep in the driver
  barrier.open();
  CHECK(test::becomes_true([&] { return base::Worker::alive() == before; }));
  stand_in.reset();  // the context frees the rest
}

TEST_CASE("a wait with a deadline costs nothing while it is parked", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.at(0).adapter);
  const auto device = good(found[0].adapter->open());
  const auto gate = good(device->create_timeline());
  const auto buffer =
      good(device->create_buffer({.bytes = 400_B, .use = MemoryUse::device, .account = nullptr}));
  Lane lane(good(device->create_lane()));
  lane.fill(range(buffer), 1);
  REQUIRE(lane.wait(Clock::steady().now() + std::chrono::seconds(60)));  // the thread that waits is there now
  lane.wait_for({gate, 1});
  lane.fill(range(buffer), 1);
  lane.submit();
  const std::clock_t before = std::clock();
  CHECK_FALSE(lane.wait(Clock::steady().now() + std::chrono::milliseconds(300)));
  const double busy = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  CHECK(busy < 0.02);
  REQUIRE(gate->signal(1));
  REQUIRE(lane.wait(Instant::max()));
}

}  // namespace wye::test
