// A guest in the process: wye's calls neither disturb a capture of the application nor fail because
// of it, and the driver stays loaded.
#include <dlfcn.h>
#include <wye/interop/cuda.hpp>
#include <wye/wye.hpp>

#include <filesystem>
#include <thread>

#include "backend/cuda/rig.hpp"
#include "support/temporary_folder.hpp"

namespace wye::test {
namespace {

/// A stream of the application, which it captures.
class Application : public RawDriver {
 public:
  void begin(CUstreamCaptureMode mode) { REQUIRE(calls_.begin(stream, mode) == CUDA_SUCCESS); }
  CUresult end() {
    CUgraph graph = nullptr;
    return calls_.end(stream, &graph);
  }
  /// Sets the mode of this thread, and returns the mode before.
  CUstreamCaptureMode exchange(CUstreamCaptureMode mode) {
    REQUIRE(cu.ThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS);
    return mode;
  }

 private:
  const CaptureCalls calls_;
};

/// Opens a device, uses it, and closes it.
void use_device(Isolation isolation) {
  auto found = discover(WYE_STAND_IN_CUDA, isolation);
  REQUIRE(found.at(0).adapter);
  const Outcome outcome = scenario(found[0].adapter, [] {});
  if (outcome.error) FAIL_CHECK(outcome.error->describe());
  CHECK(outcome.out == expected());
}

}  // namespace

TEST_CASE("wye works during a capture of the application, and the capture stays valid", "[cuda]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  Application application;
  const auto isolation = GENERATE(Isolation::shared, Isolation::device, Isolation::partition);
  const auto mode = GENERATE(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  SECTION("on the thread that captures") {
    const CUstreamCaptureMode mine = application.exchange(mode);
    application.begin(mode);
    use_device(isolation);
    CHECK(application.end() == CUDA_SUCCESS);
    CHECK(application.exchange(mine) == mode);
  }
  SECTION("on another thread") {
    application.begin(mode);
    std::thread([&] {
      use_device(isolation);
      CHECK(application.exchange(CU_STREAM_CAPTURE_MODE_GLOBAL) == CU_STREAM_CAPTURE_MODE_GLOBAL);
    }).join();
    CHECK(application.end() == CUDA_SUCCESS);
  }
}

TEST_CASE("a stream that the application captures is refused, and its capture stays valid", "[cuda]") {
  const StandIn stand_in;
  Application application;
  ContextPool pool =
      ContextPool::open({.backends = {"cuda"},
                         .adopt = {interop::cuda_device(interop::CudaDevice{0, application.context})},
                         .cuda_driver = WYE_STAND_IN_CUDA})
          .value();
  auto lease = pool.lease().value();
  auto buffer = lease.buffer<std::uint32_t>(100).value();
  lease.fill(buffer, 7);
  lease.wait().value();
  const SyncPoint point = lease.point();
  const auto follows = [&] { return interop::follow(application.stream, point); };
  const auto is_refused = [](const auto& result) {
    REQUIRE_FALSE(result);
    CHECK(result.error() == Errc::invalid_argument);
    CHECK(result.error().sentence().find("The application captures the stream into a graph") == 0);
  };
  application.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  is_refused(follows());
  is_refused(interop::sync_point(lease.device(), application.stream));
  CHECK(application.end() == CUDA_SUCCESS);
  CHECK(follows());
  CHECK(interop::sync_point(lease.device(), application.stream));

  CUevent event = nullptr;
  REQUIRE(application.cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  application.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK(application.cu.StreamWaitEvent(application.stream, event, 0) == CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  is_refused(follows());  // the capture is invalid, and not ended
  CHECK(application.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(application.cu.EventDestroy(event) == CUDA_SUCCESS);
}

TEST_CASE("the stand-in refuses calls during a capture as cuda.h says", "[cuda]") {
  const StandIn stand_in;
  Application application;
  const auto is_refused = [&] { return application.cu.MemFree(0) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; };
  const auto elsewhere = [&] {
    bool refused = false;
    std::thread([&] { refused = is_refused(); }).join();
    return refused;
  };
  CHECK_FALSE(is_refused());
  application.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  CHECK(elsewhere());
  CHECK(application.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  application.begin(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  CHECK_FALSE(elsewhere());
  CHECK(is_refused());
  CHECK(application.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  application.begin(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_FALSE(elsewhere());
  CHECK_FALSE(is_refused());
  CHECK(application.end() == CUDA_SUCCESS);
  application.begin(CU_STREAM_CAPTURE_MODE_GLOBAL);
  const CUstreamCaptureMode mine = application.exchange(CU_STREAM_CAPTURE_MODE_RELAXED);
  CHECK_FALSE(is_refused());
  (void)application.exchange(mine);
  CHECK(application.end() == CUDA_SUCCESS);
}

TEST_CASE("the driver stays loaded after the last device is closed", "[cuda]") {
  // A copy without kernels for the host, which would keep it loaded.
  const TemporaryFolder folder;
  const std::filesystem::path original = WYE_STAND_IN_CUDA;
  const std::string copy = folder / "libcuda.so.1", engine = "libwye_cuda_engine.so";
  std::filesystem::copy_file(original, copy);
  std::filesystem::create_symlink(original.parent_path() / engine, folder / engine);
  { CHECK(good(discover(copy).at(0).adapter->open())->info().id == "cuda:0"); }
  void* const loaded = ::dlopen(copy.c_str(), RTLD_NOW | RTLD_NOLOAD);
  CHECK(loaded != nullptr);
  if (loaded) ::dlclose(loaded);
}

}  // namespace wye::test
