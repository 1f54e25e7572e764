// A driver loads lazily: the first launch of a kernel in a context loads it there, if nothing has
// done so before. Such a launch waits for kernels that run, may lack memory, and is prohibited
// during a capture. wye loads a kernel when it creates it.
#include <wye/wye.hpp>

#include "backend/cuda/rig.hpp"
#include "support/cuda/planted_ptx.hpp"
#include "test_kernels_cu.hpp"

namespace wye::test {
namespace {

using std::chrono::microseconds;

/// A kernel that is not loaded.
class Unloaded : public RawDriver {
 public:
  Unloaded() {
    REQUIRE(cu.MemHostAlloc(&counts_, 8, 0) == CUDA_SUCCESS);
    std::memset(counts_, 0, 8);
    REQUIRE(cu.LibraryLoadData(&library_, standin::planted_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
            CUDA_SUCCESS);
    REQUIRE(cu.LibraryGetKernel(&kernel_, library_, "meet_too") == CUDA_SUCCESS);
    REQUIRE(cu.KernelGetFunction(&function, kernel_) == CUDA_SUCCESS);
  }
  ~Unloaded() {
    cu.LibraryUnload(library_);
    cu.MemFreeHost(counts_);
  }
  CUresult launch() {
    auto address = reinterpret_cast<CUdeviceptr>(counts_);
    unsigned patience = 1;
    void* parameters[] = {&address, &patience};
    return cu.LaunchKernel(reinterpret_cast<CUfunction>(kernel_), 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                           nullptr);
  }

 private:
  CUlibrary library_ = nullptr;
  CUkernel kernel_ = nullptr;
  void* counts_ = nullptr;

 public:
  CUfunction function = nullptr;
};

}  // namespace

TEST_CASE("the first launch of a kernel loads it, unless cuFuncLoad has", "[cuda]") {
  const StandIn stand_in;
  Unloaded rig;
  stand_in.latency("load", microseconds(500));
  const bool loads = GENERATE(true, false);
  if (loads) CHECK(rig.cu.FuncLoad(rig.function) == CUDA_SUCCESS);
  CHECK(stand_in.calls("load") == (loads ? 1 : 0));
  CHECK(rig.launch() == CUDA_SUCCESS);
  CHECK(rig.launch() == CUDA_SUCCESS);
  CHECK(rig.cu.FuncLoad(rig.function) == CUDA_SUCCESS);
  CHECK(stand_in.calls("load") == 1);
  CHECK(stand_in.spent("load") >= microseconds(500));
  CHECK(rig.cu.StreamSynchronize(rig.stream) == CUDA_SUCCESS);
}

TEST_CASE("a launch that loads may lack memory, and the next launch loads", "[cuda]") {
  const StandIn stand_in;
  Unloaded rig;
  stand_in.fail("load", 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(rig.launch() == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(rig.launch() == CUDA_SUCCESS);
  CHECK(stand_in.calls("load") == 2);
  CHECK(rig.cu.StreamSynchronize(rig.stream) == CUDA_SUCCESS);
}

TEST_CASE("a launch that loads is prohibited during a capture, a later one is not", "[cuda]") {
  const StandIn stand_in;
  Unloaded rig;
  const CaptureCalls capture;
  CUstream captured = nullptr;
  REQUIRE(rig.cu.StreamCreateWithPriority(&captured, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  const bool is_relaxed = GENERATE(false, true), loads = GENERATE(false, true);
  if (loads) CHECK(rig.cu.FuncLoad(rig.function) == CUDA_SUCCESS);
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  REQUIRE(capture.begin(captured, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  if (is_relaxed) REQUIRE(rig.cu.ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  const bool may = is_relaxed || loads;
  CHECK(rig.launch() == (may ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED));
  if (is_relaxed) REQUIRE(rig.cu.ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
  CUgraph graph = nullptr;
  CHECK(capture.end(captured, &graph) == (may ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
  CHECK(rig.cu.StreamSynchronize(rig.stream) == CUDA_SUCCESS);
  CHECK(rig.cu.StreamDestroy(captured) == CUDA_SUCCESS);
}

TEST_CASE("no launch of wye loads a kernel, in a lane or a graph", "[cuda]") {
  if (!has_kernels()) return;
  const auto isolation = GENERATE(Isolation::shared, Isolation::device, Isolation::partition);
  const char* const version = GENERATE("13000", "12020");
  if (isolation == Isolation::partition && version == std::string_view("12020")) return;
  const Setting driver("WYE_STANDIN_VERSION", version);
  const StandIn stand_in;
  const auto device = good(discover(WYE_STAND_IN_CUDA, isolation).at(0).adapter->open());
  const auto add = good(device->create_executable(good(test_kernel("add", *device, Twin::addresses))));
  CHECK(stand_in.calls("load") == 1);
  const auto a = good(device->create_buffer({.bytes = Bytes{4 * length}, .account = nullptr}));
  Lane lane(good(device->create_lane()));
  lane.fill(range(a), 1);
  lane.dispatch(add, arguments_of(a, Word{2}), length);
  SequenceState sequence(device);
  sequence.open().dispatch(add, arguments_of(a, Word{3}), length);
  lane.submit(sequence);
  std::vector<Word> got(length);
  lane.download(range(a), writable_bytes_of(got));
  REQUIRE(lane.wait(Instant::max()));
  CHECK(got == std::vector<Word>(length, 6));
  CHECK(stand_in.calls("cuGraphLaunch") == 1);
  CHECK(stand_in.calls("load") == 1);
}

TEST_CASE("a kernel whose load lacks memory is an error of its creation, and its job falls back", "[cuda]") {
  if (!has_kernels()) return;
  const char* const version = GENERATE("13000", "12020");
  const Setting driver("WYE_STANDIN_VERSION", version);
  const StandIn stand_in;
  {
    const auto device = good(discover().at(0).adapter->open());
    stand_in.fail("load", 1, CUDA_ERROR_OUT_OF_MEMORY);
    const auto made = device->create_executable(good(test_kernel("add", *device, Twin::addresses)));
    REQUIRE_FALSE(made);
    CHECK(made.error() == Errc::out_of_memory);
    CHECK_FALSE(device->lost());
  }
  RuntimeOptions options;
  options.pool.backends = {"cuda", "cpu"};
  options.pool.cuda_driver = WYE_STAND_IN_CUDA;
  options.qualification = Qualification::never;
  options.scheduler.preferences = {{workload_types::vector, Bytes{}, {"cuda", "cpu"}}};
  Runtime runtime = good(Runtime::open(options));
  using Add = Kernel<ReadWrite<Word>, Word>;
  const Add add = good(Add::make({.name = "add",
                                  .sources = {CudaCpp{.text = test_kernels_cu, .workgroup = Extent3{64}},
                                              host([](Range r, std::span<Word> x, Word by) {
                                                for (auto i : r) x[i] += by;
                                              })}}));
  stand_in.fail("load", 0, CUDA_ERROR_OUT_OF_MEMORY);
  std::vector<Word> x(10'000, 1);
  const auto done = runtime.submit(Job(add(x, 41), workload_types::vector)).wait();
  if (!done) FAIL(done.error().describe());
  CHECK(done->backend() == "cpu");
  INFO(done->reason());
  CHECK(done->reason().find("cuda") != std::string::npos);
  CHECK(x == std::vector<Word>(10'000, 42));
  CHECK(stand_in.calls("load") >= 1);
}

}  // namespace wye::test
