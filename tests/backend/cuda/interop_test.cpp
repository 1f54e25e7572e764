// An application with CUDA of its own and wye in one context: in both directions, without copies,
// ordered by events.
#include <wye/interop/cuda.hpp>
#include <wye/interop/dlpack.hpp>
#include <wye/wye.hpp>

#include "backend/cuda/rig.hpp"
#include "interop/dlpack_abi.hpp"
#include "support/kernels.hpp"

namespace wye::test {
namespace {

using namespace std::chrono_literals;

/// A program that has the primary context current, and a stream and memory in it.
class CudaHost {
 public:
  CudaHost() : driver_(good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA))), cu(driver_->cu) {
    REQUIRE(cu.DeviceGet(&device, 0) == CUDA_SUCCESS);
    REQUIRE(cu.DevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS);
    REQUIRE(cu.CtxPushCurrent(context) == CUDA_SUCCESS);
    REQUIRE(cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    REQUIRE(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    REQUIRE(cu.MemHostAlloc(&pinned, bytes, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
    REQUIRE(cu.MemHostGetDevicePointer(&memory, pinned, 0) == CUDA_SUCCESS);
  }
  ~CudaHost() {
    cu.StreamSynchronize(stream);
    cu.MemFreeHost(pinned);
    cu.EventDestroy(event);
    cu.StreamDestroy(stream);
    CUcontext popped = nullptr;
    cu.CtxPopCurrent(&popped);
    CHECK(popped == context);
    cu.DevicePrimaryCtxRelease(device);
  }
  CudaHost(const CudaHost&) = delete;
  ContextPool pool() const {
    return ContextPool::open({.backends = {"cuda"},
                              .adopt = {interop::cuda_device(interop::CudaDevice{device, context})},
                              .cuda_driver = WYE_STAND_IN_CUDA})
        .value();
  }

 private:
  std::shared_ptr<cuda::CudaDriver> driver_;

 public:
  const cuda::DriverTable& cu;
  static constexpr std::size_t bytes = 4000;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  void* pinned = nullptr;
  CUdeviceptr memory = 0;
};

TEST_CASE("the application's context is used and kept, and the native handles are the application's",
          "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  const auto before = stand_in.alive();
  {
    ContextPool pool = host.pool();
    REQUIRE(pool.devices().size() == 1);
    const Device device = pool.devices().front();
    CHECK(device.id() == "cuda:host");
    const auto out = interop::cuda_device(device).value();
    CHECK(out.context == host.context);
    CHECK(out.device == host.device);
    bool replaced = false;
    for (const AdapterInfo& info : pool.adapters())
      replaced |= info.id == "cuda:0" && !info.usable && info.reason.find("'cuda:host'") != std::string::npos;
    CHECK(replaced);
    auto lease = pool.lease().value();
    auto buffer = lease.buffer<Word>(100).value();
    const auto memory = interop::cuda_buffer(buffer).value();
    CHECK(memory.address == buffer.address());
    CHECK(memory.bytes == 400);
    CHECK(stand_in.depth() == 1);
    CHECK(stand_in.current() == host.context);
  }
  CHECK(stand_in.changed_since(before) == "");
  CHECK(stand_in.current() == host.context);
}

TEST_CASE("a context of another device, none, or of no driver, is refused", "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  const auto refused = [&](interop::CudaDevice brought, const char* words) {
    auto pool = ContextPool::open(
        {.backends = {"cpu"}, .adopt = {interop::cuda_device(brought)}, .cuda_driver = WYE_STAND_IN_CUDA});
    if (pool) {  // a failure to open is the adapter's reason
      CHECK(pool->devices().size() == 1);
      CHECK(pool->adapters().front().reason.find(words) != std::string::npos);
      return;
    }
    INFO(pool.error().describe());
    CHECK(pool.error() == Errc::invalid_argument);
    CHECK(pool.error().sentence().find(words) != std::string::npos);
  };
  refused({host.device, nullptr}, "The CUDA context");
  refused({7, host.context}, "(7) is not below the number of CUDA devices (1)");
  const Setting two("WYE_STANDIN_DEVICES", "2");
  refused({1, host.context}, "belongs to device 0; expected device 1");
}

TEST_CASE("the host's memory is a buffer, released once after its last use", "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  int released = 0;
  {
    ContextPool pool = host.pool();
    auto lease = pool.lease().value();
    auto buffer = interop::cuda_buffer<Word>(lease.device(), {host.memory, CudaHost::bytes}, [&] {
                    ++released;
                  }).value();
    CHECK(buffer.size() == CudaHost::bytes / 4);
    CHECK(buffer.address() == host.memory);
    lease.fill(buffer, 9);
    buffer = {};
    lease.wait().value();
    CHECK(static_cast<Word*>(host.pinned)[999] == 9);
    for (const auto& [memory, words] :
         {std::pair{interop::CudaBuffer{0, 4}, "null"},
          std::pair{interop::CudaBuffer{host.memory, 0}, "0 bytes"},
          std::pair{interop::CudaBuffer{host.memory, 6}, "not a multiple"},
          std::pair{interop::CudaBuffer{host.memory + 2, 8}, "multiple"},
          std::pair{interop::CudaBuffer{~std::uint64_t{0} - 3, 8}, "address space"}}) {
      auto refused = interop::cuda_buffer<Word>(lease.device(), memory, [&] { released += 100; });
      REQUIRE_FALSE(refused);
      INFO(refused.error().describe());
      CHECK(refused.error() == Errc::invalid_argument);
      CHECK(refused.error().sentence().find(words) != std::string::npos);
    }
  }
  CHECK(released == 1);
}

TEST_CASE("a lane follows the host's stream and its event, and the host's stream the lane", "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  ContextPool pool = host.pool();
  auto lease = pool.lease().value();
  auto buffer = interop::cuda_buffer<Word>(lease.device(), {host.memory, CudaHost::bytes}).value();
  std::vector<Word> seen(1000);
  for (Word round = 1; round <= 20; ++round) {
    stand_in.seed(round);  // of the delays
    host.cu.MemsetD32Async(host.memory, round, 1000, host.stream);
    if (round % 2 == 0) {
      host.cu.EventRecord(host.event, host.stream);
      lease.wait_for(interop::sync_point(lease.device(), host.event).value());
    } else {
      lease.wait_for(interop::sync_point(lease.device(), host.stream).value());
    }
    lease.download(buffer, seen);
    lease.fill(buffer, 1000 + round);
    interop::follow(host.stream, lease.point()).value();
    host.cu.MemcpyAsync(host.memory, host.memory + 2000, 2000, host.stream);
    lease.wait().value();
    CHECK(seen == std::vector<Word>(1000, round));
    host.cu.StreamSynchronize(host.stream);
    CHECK(static_cast<Word*>(host.pinned)[0] == 1000 + round);
  }
  CHECK(stand_in.depth() == 1);
}

TEST_CASE("the host can wait for the application's points, and cannot signal them", "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  ContextPool pool = host.pool();
  auto lease = pool.lease().value();
  const SyncPoint point = interop::sync_point(lease.device(), host.stream).value();
  point.wait(1min).value();
  CHECK(point.reached());
  interop::sync_point(lease.device(), host.stream).value().wait().value();
  CHECK(interop::sync_point(lease.device(), CUevent{}).error() == Errc::invalid_argument);
  CHECK(interop::follow(host.stream, {}).error() == Errc::invalid_argument);
  lease.signal(point);
  CHECK(lease.wait().error() == Errc::unsupported);
}

TEST_CASE("a DLPack tensor of CUDA is an array there, and an array is one", "[cuda]") {
  const StandIn stand_in;
  const CudaHost host;
  int deleted = 0;
  {
    Runtime runtime =
        Runtime::open({.pool = {.backends = {"cuda", "cpu"}, .cuda_driver = WYE_STAND_IN_CUDA}}).value();
    for (int i = 0; i < 1000; ++i) static_cast<float*>(host.pinned)[i] = static_cast<float>(i);
    std::int64_t shape[] = {10, 90};
    DLManagedTensorVersioned tensor{
        .version = {1, 0},
        .manager_ctx = &deleted,
        .deleter = [](DLManagedTensorVersioned* t) { ++*static_cast<int*>(t->manager_ctx); },
        .flags = 0,
        .dl_tensor = {.data = wye::detail::handle_of<void*>(host.memory),
                      .device = {interop::dl::cuda, 0},
                      .ndim = 2,
                      .dtype = {interop::dl::real, 32, 1},
                      .shape = shape,
                      .strides = nullptr,
                      .byte_offset = 400}};
    tensor.dl_tensor.device.device_id = 3;
    CHECK(interop::from_dlpack<float>(runtime, &tensor).error() == Errc::unsupported);
    tensor.dl_tensor.device.device_id = 0;
    {
      auto array = interop::from_dlpack<float>(runtime, &tensor).value();
      CHECK((*array.read())[0] == 100.0f);
      const Device device = runtime.devices().front();
      DLManagedTensorVersioned* out = interop::to_dlpack(array, {.shape = {900}, .on = device}).value();
      CHECK(out->dl_tensor.data == wye::detail::handle_of<void*>(host.memory + 400));  // the same address
      CHECK(out->dl_tensor.device.device_type == interop::dl::cuda);
      CHECK(deleted == 0);
      out->deleter(out);
      auto fresh = runtime.array(std::vector<float>(10, 5.0f));
      DLManagedTensorVersioned* moved = interop::to_dlpack(fresh, {.on = device, .writable = true}).value();
      host.cu.MemsetD32Async(wye::detail::number_of(moved->dl_tensor.data), 0, 10, host.stream);
      host.cu.StreamSynchronize(host.stream);
      moved->deleter(moved);
      CHECK((*fresh.read())[9] == 0.0f);
    }
  }
  CHECK(deleted == 1);
}

}  // namespace
}  // namespace wye::test
