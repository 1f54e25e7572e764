// The scripted latencies of the stand-in: each is taken once for each call, launch, context or
// sleeper that has it. The stand-in itself measures how long it takes them: a slow machine takes
// them longer, and never less long.
#include "backend/cuda/cuda_loader.hpp"
#include "backend/cuda/rig.hpp"

namespace wye::test {
namespace {

using std::chrono::microseconds;

/// A lane of the stand-in, and the kernel 'add'.
struct Rig {
  std::shared_ptr<DeviceBase> device = good(discover().at(0).adapter->open());
  std::shared_ptr<BufferBase> buffer =
      good(device->create_buffer({.bytes = Bytes{4 * length}, .use = MemoryUse::device, .account = nullptr}));
  std::shared_ptr<ExecutableBase> add =
      good(device->create_executable(good(test_kernel("add", *device, Twin::addresses))));
  Lane lane{good(device->create_lane())};

  void dispatch_and_wait() {
    lane.dispatch(add, arguments_of(buffer, Word{1}), length);
    REQUIRE(lane.wait(Instant::max()));
  }
};

}  // namespace

TEST_CASE("a scripted kernel takes its duration, and another kernel that of all", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Rig rig;
  stand_in.latency("kernel", microseconds(200));
  rig.dispatch_and_wait();
  rig.dispatch_and_wait();
  CHECK(stand_in.spent("kernel") >= microseconds(400));
  stand_in.latency("kernel/add", microseconds(10'000));
  const auto before = stand_in.spent("kernel");
  rig.dispatch_and_wait();
  CHECK(stand_in.spent("kernel/add") >= microseconds(10'000));
  CHECK(stand_in.spent("kernel") == before);
}

TEST_CASE("a call takes its scripted latency each time", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Rig rig;
  const long launches = stand_in.calls("cuLaunchKernel");
  stand_in.latency("cuLaunchKernel", microseconds(50));
  for (int i = 0; i < 3; ++i) rig.dispatch_and_wait();
  REQUIRE(stand_in.calls("cuLaunchKernel") == launches + 3);
  CHECK(stand_in.spent("cuLaunchKernel") >= microseconds(150));
}

/// A stream of the driver itself, and two events: a thread sleeps for the first and looks for the
/// second.
class Driver : public RawDriver {
 public:
  Driver() {
    REQUIRE(cu.EventCreate(&sleeping, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC) == CUDA_SUCCESS);
    REQUIRE(cu.EventCreate(&looking, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  }
  ~Driver() {
    cu.StreamSynchronize(stream);
    cu.EventDestroy(sleeping);
    cu.EventDestroy(looking);
  }

  CUevent sleeping = nullptr, looking = nullptr;
};

TEST_CASE("a thread that sleeps for an event or a stream spends the wake-up", "[cuda]") {
  const StandIn stand_in;
  const Driver driver;
  stand_in.latency("kernel", microseconds(2000));
  stand_in.latency("cuEventSynchronize/wake", microseconds(50));
  stand_in.latency("cuStreamSynchronize/wake", microseconds(30));
  // A thread that is late finds the work complete and does not sleep.
  while (stand_in.spent("cuEventSynchronize/wake") < microseconds(50)) {
    stand_in.enqueue(
        driver.stream, [](void*) {}, nullptr);
    REQUIRE(driver.cu.EventRecord(driver.sleeping, driver.stream) == CUDA_SUCCESS);
    REQUIRE(driver.cu.EventSynchronize(driver.sleeping) == CUDA_SUCCESS);
  }
  while (stand_in.spent("cuStreamSynchronize/wake") < microseconds(30)) {
    stand_in.enqueue(
        driver.stream, [](void*) {}, nullptr);
    REQUIRE(driver.cu.StreamSynchronize(driver.stream) == CUDA_SUCCESS);
  }
}

TEST_CASE("a wait for complete work, or without CU_EVENT_BLOCKING_SYNC, has no wake-up", "[cuda]") {
  const StandIn stand_in;
  const Driver driver;
  REQUIRE(driver.cu.EventRecord(driver.sleeping, driver.stream) == CUDA_SUCCESS);
  REQUIRE(driver.cu.StreamSynchronize(driver.stream) == CUDA_SUCCESS);
  stand_in.latency("cuEventSynchronize/wake", microseconds(50));
  REQUIRE(driver.cu.EventSynchronize(driver.sleeping) == CUDA_SUCCESS);
  stand_in.latency("kernel", microseconds(2000));
  stand_in.enqueue(
      driver.stream, [](void*) {}, nullptr);
  REQUIRE(driver.cu.EventRecord(driver.looking, driver.stream) == CUDA_SUCCESS);
  REQUIRE(driver.cu.EventSynchronize(driver.looking) == CUDA_SUCCESS);
  CHECK(stand_in.spent("cuEventSynchronize/wake") == microseconds(0));
}

TEST_CASE("cuInit and a context take their latencies at the first use only", "[cuda]") {
  const StandIn stand_in;
  stand_in.latency("init", microseconds(300));
  stand_in.latency("context", microseconds(200));
  {
    const auto adapter = discover().at(0).adapter;
    const auto init = stand_in.spent("init");
    CHECK(init >= microseconds(300));
    const auto first = good(adapter->open());
    const auto context = stand_in.spent("context");
    CHECK(context >= microseconds(200));
    const auto second = good(discover().at(0).adapter->open());
    REQUIRE(good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA))->cu.Init(0) == CUDA_SUCCESS);
    CHECK(stand_in.spent("init") == init);
    CHECK(stand_in.spent("context") == context);
  }
  const auto again = good(discover().at(0).adapter->open());
  CHECK(stand_in.spent("context") >= microseconds(400));
}

TEST_CASE("the environment scripts latencies", "[.][latencies]") {
  REQUIRE(std::getenv("WYE_STANDIN_LATENCIES") == std::string("context:300,cuMemGetInfo:70"));
  const auto library = good(DynamicLibrary::open(WYE_STAND_IN_CUDA));  // a StandIn resets them
  const auto spent = library.function<long (*)(const char*)>("wye_standin_spent");
  const auto device = good(discover().at(0).adapter->open());
  (void)device->memory();
  CHECK(spent("context") >= 300);
  CHECK(spent("cuMemGetInfo") >= 70);
  CHECK(spent("init") == 0);
}

}  // namespace wye::test
