// The stand-in knows which operations the driver's documentation orders: memory that is used before
// its allocation or freed before its last use is found, whatever the timing. ThreadSanitizer would
// report these mistakes too.
#include <wye/kernel/compile.hpp>
#include <wye/wye.hpp>

#include "backend/cuda/rig.hpp"

namespace wye::test {
namespace {

/// Two streams of a program, an event and a memory pool.
class TwoStreams : public RawDriver {
 public:
  TwoStreams() {
    REQUIRE(cu.StreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
    REQUIRE(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    REQUIRE(cu.MemPoolCreate(&pool_, &properties) == CUDA_SUCCESS);
  }
  ~TwoStreams() {
    cu.StreamDestroy(b);
    cu.EventDestroy(event);
    cu.MemPoolDestroy(pool_);
  }
  CUdeviceptr allocate(CUstream on) {
    CUdeviceptr memory = 0;
    REQUIRE(cu.MemAllocFromPoolAsync(&memory, bytes, pool_, on) == CUDA_SUCCESS);
    return memory;
  }
  CUresult fill(CUdeviceptr memory, CUstream on) { return cu.MemsetD32Async(memory, 7, bytes / 4, on); }
  void free(CUdeviceptr memory, CUstream on) { (void)cu.MemFreeAsync(memory, on); }
  /// Makes `behind` wait for all work of `first`.
  void order(CUstream first, CUstream behind) {
    REQUIRE(cu.EventRecord(event, first) == CUDA_SUCCESS);
    REQUIRE(cu.StreamWaitEvent(behind, event, 0) == CUDA_SUCCESS);
  }
  CUresult end() {
    const CUresult first = cu.StreamSynchronize(a), second = cu.StreamSynchronize(b);
    return first == CUDA_SUCCESS ? second : first;
  }

 private:
  static constexpr std::size_t bytes = 4096;
  CUmemoryPool pool_ = nullptr;

 public:
  const CUstream a = stream;
  CUstream b = nullptr;
  CUevent event = nullptr;
};

}  // namespace

TEST_CASE("the stand-in finds memory that is used before its allocation", "[cuda][no_tsan]") {
  const StandIn stand_in;
  TwoStreams two;
  const CUdeviceptr memory = two.allocate(two.a);
  SECTION("nothing orders the streams") {
    two.fill(memory, two.b);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("an event was recorded before the allocation") {
    two.order(two.a, two.b);
    const CUdeviceptr later = two.allocate(two.a);
    two.fill(memory, two.b);
    CHECK(two.cu.EventQuery(two.event) != CUDA_ERROR_ILLEGAL_ADDRESS);
    two.fill(later, two.b);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("an event orders them") {
    two.order(two.a, two.b);
    two.fill(memory, two.b);
    two.free(memory, two.b);
    CHECK(two.end() == CUDA_SUCCESS);
  }
  SECTION("the host has waited") {
    REQUIRE(two.cu.StreamSynchronize(two.a) == CUDA_SUCCESS);
    two.fill(memory, two.b);
    two.free(memory, two.b);
    CHECK(two.end() == CUDA_SUCCESS);
  }
}

TEST_CASE("the stand-in finds memory that is freed before its last use, or used afterwards",
          "[cuda][no_tsan]") {
  const StandIn stand_in;
  TwoStreams two;
  const CUdeviceptr memory = two.allocate(two.a), other = two.allocate(two.a);
  two.order(two.a, two.b);
  two.fill(memory, two.a);
  (void)two.cu.MemcpyAsync(other, memory, 4096, two.b);
  SECTION("nothing orders the free") {
    two.free(memory, two.a);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("the host has waited for another stream") {
    REQUIRE(two.cu.StreamSynchronize(two.a) == CUDA_SUCCESS);
    two.free(memory, two.a);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("it is used after it") {
    two.order(two.a, two.b);
    two.free(memory, two.b);
    // The call itself finds it if the memory is gone by then.
    const CUresult filled = two.fill(memory, two.b);
    const CUresult ended = two.end();
    CHECK((filled == CUDA_ERROR_INVALID_VALUE || ended == CUDA_ERROR_ILLEGAL_ADDRESS));
  }
  SECTION("an event orders it") {
    two.order(two.b, two.a);
    two.free(memory, two.a);
    two.free(other, two.a);
    CHECK(two.end() == CUDA_SUCCESS);
  }
  SECTION("the host has seen the event") {
    REQUIRE(two.cu.EventRecord(two.event, two.b) == CUDA_SUCCESS);
    REQUIRE(two.cu.EventSynchronize(two.event) == CUDA_SUCCESS);
    two.free(memory, two.a);
    two.free(other, two.a);
    CHECK(two.end() == CUDA_SUCCESS);
  }
}

TEST_CASE("the stand-in finds memory that a kernel uses", "[cuda][no_tsan]") {
  if (!has_kernels()) return;
  const StandIn stand_in;
  TwoStreams two;
  const char* const text = R"(extern "C" __global__ void add(wye_span<unsigned> x, unsigned by) {
  const unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < x.size) x[i] += by;
})";
  const auto made = good(compile(CudaCpp{.text = text}, {.name = "add", .target = "sm_90"}));
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  REQUIRE(two.cu.LibraryLoadData(&library, made.cubin->bytes.data(), nullptr, nullptr, 0, nullptr, nullptr,
                                 0) == CUDA_SUCCESS);
  REQUIRE(two.cu.LibraryGetKernel(&kernel, library, "add") == CUDA_SUCCESS);
  struct {
    CUdeviceptr data;
    std::uint64_t size;
    unsigned by;
  } parameters{two.allocate(two.a), 100, 1};
  const auto launch = [&] {
    std::size_t size = 20;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    return two.cu.LaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 128, 1, 1, 0, two.b, nullptr,
                               extra);
  };
  SECTION("before its allocation") {
    CHECK(launch() == CUDA_SUCCESS);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("behind its free") {
    two.order(two.a, two.b);
    CHECK(launch() == CUDA_SUCCESS);
    two.free(parameters.data, two.a);
    CHECK(two.end() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  SECTION("between the two") {
    two.order(two.a, two.b);
    CHECK(launch() == CUDA_SUCCESS);
    two.order(two.b, two.a);
    two.free(parameters.data, two.a);
    CHECK(two.end() == CUDA_SUCCESS);
  }
  two.cu.LibraryUnload(library);
}

}  // namespace wye::test
