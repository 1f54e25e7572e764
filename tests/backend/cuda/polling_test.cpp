// How long a thread polls for the device before it sleeps in the driver.
#include "backend/cuda/cuda_polling.hpp"
#include "backend/cuda/rig.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;
using cuda::RecentWaits;

constexpr Duration limit = 300us;

/// A lane of a device that polls up to `limit`.
struct PollingRig {
  explicit PollingRig(Duration most) {
    BackendOptions options;
    options.cuda_driver = WYE_STAND_IN_CUDA;
    options.poll_limit = most;
    device = good(discover(options).at(0).adapter->open());
    buffer = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
    add = good(device->create_executable(good(test_kernel("add", *device, Twin::addresses))));
    lane.emplace(good(device->create_lane()));
  }
  void run(int times) {
    for (int i = 0; i < times; ++i) {
      lane->dispatch(add, arguments_of(buffer, Word{1}), length);
      REQUIRE(lane->wait(Instant::max()));
    }
  }
  std::shared_ptr<DeviceBase> device;
  std::shared_ptr<BufferBase> buffer;
  std::shared_ptr<ExecutableBase> add;
  std::optional<Lane> lane;
};

}  // namespace

TEST_CASE("a thread polls up to the limit while waits are as short, and as long as a sleep costs otherwise",
          "[cuda]") {
  RecentWaits waits;
  CHECK(waits.polling(limit) == limit);  // nothing is known
  for (int i = 0; i < 10; ++i) waits.add(200us, false, limit);
  CHECK(waits.polling(limit) == limit);
  waits.add(10ms, false, limit);  // one long wait ends it
  CHECK(waits.polling(limit) == RecentWaits::cost_of_sleep);
  for (int i = 0; i < 100; ++i) waits.add(10ms, false, limit);
  CHECK(waits.polling(limit) == RecentWaits::cost_of_sleep);
  int shorter = 0;
  for (; waits.polling(limit) != limit; ++shorter) waits.add(200us, false, limit);
  CHECK(shorter > 1);
  CHECK(shorter <= 10);
  for (int i = 0; i < 40; ++i) waits.add(400us, false, limit);
  CHECK(waits.polling(limit) == RecentWaits::cost_of_sleep);
}

TEST_CASE("the cost of a sleep does not keep a thread from polling", "[cuda]") {
  RecentWaits slept, polled;
  for (int i = 0; i < 100; ++i) {
    slept.add(320us, true, limit);
    polled.add(320us, false, limit);
  }
  CHECK(slept.polling(limit) == limit);
  CHECK(polled.polling(limit) == RecentWaits::cost_of_sleep);
  for (int i = 0; i < 100; ++i) slept.add(1us, true, limit);  // woken by another thread's result
  CHECK(slept.polling(limit) == limit);
}

TEST_CASE("a limit of zero turns polling off, and a small one bounds it", "[cuda]") {
  RecentWaits waits;
  CHECK(waits.polling(0us) == 0us);
  for (int i = 0; i < 10; ++i) waits.add(10ms, false, 5us);
  CHECK(waits.polling(5us) == 5us);
  CHECK(waits.polling(0us) == 0us);
}

TEST_CASE("a wait within the limit does not sleep in the driver", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  stand_in.latency("kernel", 2ms);
  PollingRig rig(60s);
  rig.run(10);
  CHECK(stand_in.calls("cuEventSynchronize") == 0);
}

TEST_CASE("a wait without polling queries once and sleeps", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  stand_in.latency("kernel", 20ms);
  PollingRig rig(0us);
  rig.run(5);
  CHECK(stand_in.calls("cuEventSynchronize") == 5);
  CHECK(stand_in.calls("cuEventQuery") <= 10);  // the lane looks once more when it reuses batches
}

TEST_CASE("waits for long work sleep in the driver", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  stand_in.latency("kernel", 20ms);
  PollingRig rig(300us);
  rig.run(5);
  CHECK(stand_in.calls("cuEventSynchronize") == 5);
}

}  // namespace wye::test
