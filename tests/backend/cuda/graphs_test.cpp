// The driver calls for sequences, priorities, partitions and memory.
#include <future>

#include "backend/cuda/rig.hpp"

namespace wye::test {

namespace {

/// A device of the stand-in, and a sequence of three steps on it.
struct GraphRig {
  StandIn stand_in;
  std::shared_ptr<DeviceBase> device = good(discover().at(0).adapter->open());
  std::shared_ptr<ExecutableBase> add = kernel("add"), mix = kernel("mix");
  std::shared_ptr<BufferBase> a = buffer(), b = buffer();
  Lane lane{good(device->create_lane())};
  SequenceState sequence{device};

  GraphRig() {
    sequence.open().fill(range(a), 1);
    sequence.open().dispatch(add, arguments_of(a, Word{2}), length);
    sequence.open().dispatch(mix, arguments_of(a, b, Word{5}), length);
  }
  std::shared_ptr<ExecutableBase> kernel(const char* name) const {
    return good(device->create_executable(good(test_kernel(name, *device, Twin::addresses))));
  }
  std::shared_ptr<BufferBase> buffer() const {
    return good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
  }
  void run() {
    lane.submit(sequence);
    REQUIRE(lane.wait(Instant::max()));
  }
};

}  // namespace

TEST_CASE("a sequence is one graph: a run is one launch, other arguments are set in it", "[cuda]") {
  if (!has_kernels()) return;
  GraphRig rig;
  rig.lane.fill(range(rig.b), 0);
  rig.run();
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 1);
  for (Word i = 0; i < 10; ++i) {
    REQUIRE(rig.sequence.open().set(1, 1, argument(i)));
    rig.run();
    rig.run();
  }
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 1);
  CHECK(rig.stand_in.calls("cuGraphExecKernelNodeSetParams") == 10);
  CHECK(rig.stand_in.calls("cuGraphLaunch") == 21);
  CHECK(rig.stand_in.calls("cuLaunchKernel") == 0);
}

TEST_CASE("a graph is created again if its edges change or a step is added", "[cuda]") {
  if (!has_kernels()) return;
  GraphRig rig;
  const auto c = rig.buffer();
  rig.run();
  REQUIRE(rig.sequence.open().set(1, 0, argument(c)));  // the fill before it is of another buffer
  rig.run();
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 2);
  REQUIRE(rig.sequence.open().set(2, 1, argument(rig.buffer())));
  rig.run();
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 2);
  rig.sequence.open().fill(range(c), 1);
  rig.run();
  CHECK(rig.stand_in.calls("cuGraphInstantiateWithFlags") == 3);
}

TEST_CASE("a driver that makes no graph, or takes no other arguments, does the steps all the same",
          "[cuda]") {
  if (!has_kernels()) return;
  for (const char* function : {"cuGraphCreate", "cuGraphAddKernelNode", "cuGraphAddMemsetNode",
                               "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams"}) {
    INFO(function);
    {
      GraphRig rig;
      rig.stand_in.fail(function, 1, CUDA_ERROR_NOT_SUPPORTED);
      rig.run();
      REQUIRE(rig.sequence.open().set(1, 1, argument(Word{40})));
      rig.run();
      std::vector<Word> got(length);
      rig.lane.download(range(rig.a), writable_bytes_of(got));
      REQUIRE(rig.lane.wait(Instant::max()));
      CHECK(got == std::vector<Word>(length, 41));
    }
    const StandIn after;
    CHECK(after.alive()["graphs"] == 0);
  }
}

TEST_CASE("a lane of high priority is a stream of the highest priority there is", "[cuda]") {
  const StandIn stand_in;
  const auto device = good(discover().at(0).adapter->open());
  const auto normal = good(device->create_lane());
  CHECK(stand_in.priority() == 0);
  const auto high = good(device->create_lane({.priority = LanePriority::high}));
  CHECK(stand_in.priority() == -5);
}

TEST_CASE("taking memory waits for nothing, and lanes begin behind it", "[cuda]") {
  const StandIn stand_in;
  const auto device = good(discover().at(0).adapter->open());
  Lane lane(good(device->create_lane()));
  const long waited = stand_in.calls("cuStreamSynchronize");
  for (int round = 0; round < 200; ++round) {
    const auto buffer = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
    const auto words = numbers(static_cast<Word>(round));
    std::vector<Word> got(length);
    lane.upload(bytes_of(words), range(buffer));
    lane.download(range(buffer), writable_bytes_of(got));
    REQUIRE(lane.wait(Instant::max()));
    REQUIRE(got == words);
  }
  CHECK(stand_in.calls("cuStreamSynchronize") == waited);
}

namespace {

Result<std::shared_ptr<DeviceBase>> open_partition(Partition part) {
  return discover(WYE_STAND_IN_CUDA, Isolation::partition, part).at(0).adapter->open();
}

}  // namespace

TEST_CASE("a partition is a green context: all of the device's work is in it", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto took = [&] { return stand_in.multiprocessors(); };
  for (const auto& [part, multiprocessors] :
       {std::pair{Partition{}, 72}, std::pair{Partition{.multiprocessors = 16}, 16},
        std::pair{Partition{.percent = 25}, 40}, std::pair{Partition{.percent = 1}, 8}}) {
    const auto device = good(open_partition(part));
    CHECK(took() == multiprocessors);  // of 132, in steps of 8
    CHECK(stand_in.alive()["partitions"] == 1);
    const auto a = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
    Lane lane(good(device->create_lane({.priority = LanePriority::high})));
    CHECK(stand_in.priority() == -5);
    std::vector<Word> got(length);
    lane.fill(range(a), 2);
    lane.dispatch(good(device->create_executable(good(test_kernel("add", *device, Twin::addresses)))),
                  arguments_of(a, Word{3}), length);
    lane.download(range(a), writable_bytes_of(got));
    REQUIRE(lane.wait(Instant::max()));
    CHECK(got == std::vector<Word>(length, 5));
  }
  CHECK(stand_in.calls("cuGreenCtxCreate") == 4);
  CHECK(stand_in.alive()["partitions"] == 0);
  CHECK(stand_in.left_behind() == 0);
}

TEST_CASE("threads work in a partition at the same time, though one alone may have its context", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  const auto device = good(open_partition({}));
  const Artefact add = good(test_kernel("add", *device, Twin::addresses));
  const auto work = [&](Word number) {
    std::vector<Word> wrong;
    for (Word round = 0; round < 20; ++round) {
      Lane lane(good(device->create_lane()));
      const auto a = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
      const auto kernel = good(device->create_executable(add));
      SequenceState sequence(device);
      sequence.open().fill(range(a), number);
      sequence.open().dispatch(kernel, arguments_of(a, round), length);
      lane.submit(sequence);
      std::vector<Word> got(length);
      lane.download(range(a), writable_bytes_of(got));
      // With a deadline, another thread waits, too.
      if (!lane.wait(Clock::steady().now() + std::chrono::seconds(60)) ||
          got != std::vector<Word>(length, number + round))
        wrong.push_back(round);
    }
    return wrong;
  };
  std::vector<std::future<std::vector<Word>>> threads;
  for (Word number = 1; number <= 4; ++number)
    threads.push_back(std::async(std::launch::async, work, 100 * number));
  for (auto& thread : threads) CHECK(thread.get().empty());
}

TEST_CASE("an impossible partition is refused, with the limit or the missing feature", "[cuda]") {
  const StandIn stand_in;
  auto much = open_partition({.multiprocessors = 1000});
  REQUIRE_FALSE(much);
  CHECK(much.error() == Errc::unsupported);
  CHECK(much.error().sentence().find("1000") != std::string::npos);
  CHECK(much.error().sentence().find("132") != std::string::npos);
  for (const char* function :
       {"cuDeviceGetDevResource", "cuDevSmResourceSplitByCount", "cuDevResourceGenerateDesc",
        "cuGreenCtxCreate", "cuCtxFromGreenCtx", "cuGreenCtxStreamCreate"}) {
    stand_in.fail(function, 1, CUDA_ERROR_NOT_SUPPORTED);
    auto refused = open_partition({});
    INFO(function);
    REQUIRE_FALSE(refused);
    CHECK(refused.error() == Errc::unsupported);
    CHECK(stand_in.alive()["contexts"] == 0);
    CHECK(stand_in.left_behind() == 0);
  }
  const Setting old("WYE_STANDIN_VERSION", "12020");
  auto missing = open_partition({});
  REQUIRE_FALSE(missing);
  CHECK(missing.error() == Errc::unsupported);
  CHECK(missing.error().sentence().find("green contexts") != std::string::npos);
}

}  // namespace wye::test
