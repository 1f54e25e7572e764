#include "raw_cuda.hpp"

#include <cuda.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace wye_bench {
namespace {

#define WYE_PEER_FUNCTIONS(X)    \
  X(cuInit)                      \
  X(cuDeviceGet)                 \
  X(cuDeviceGetAttribute)        \
  X(cuDevicePrimaryCtxRetain)    \
  X(cuDevicePrimaryCtxRelease)   \
  X(cuCtxGetCurrent)             \
  X(cuCtxPushCurrent)            \
  X(cuCtxPopCurrent)             \
  X(cuStreamCreateWithPriority)  \
  X(cuStreamDestroy)             \
  X(cuStreamSynchronize)         \
  X(cuEventCreate)               \
  X(cuEventRecord)               \
  X(cuEventQuery)                \
  X(cuEventSynchronize)          \
  X(cuEventDestroy)              \
  X(cuMemGetInfo)                \
  X(cuMemAlloc)                  \
  X(cuMemFree)                   \
  X(cuMemHostAlloc)              \
  X(cuMemFreeHost)               \
  X(cuMemcpyAsync)               \
  X(cuLibraryLoadData)           \
  X(cuLibraryUnload)             \
  X(cuLibraryGetKernel)          \
  X(cuKernelGetFunction)         \
  X(cuLaunchKernel)              \
  X(cuGraphCreate)               \
  X(cuGraphDestroy)              \
  X(cuGraphAddKernelNode)        \
  X(cuGraphInstantiateWithFlags) \
  X(cuGraphExecDestroy)          \
  X(cuGraphLaunch)

struct Driver {
#define WYE_PEER_MEMBER(name) decltype(&name) name##_ = nullptr;
  WYE_PEER_FUNCTIONS(WYE_PEER_MEMBER)
#undef WYE_PEER_MEMBER
};

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

// The functions of cuBLAS that are used here.
using Create = int (*)(void**);
using Destroy = int (*)(void*);
using SetStream = int (*)(void*, CUstream);
using Sgemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                      const float*, float*, int);

}  // namespace

struct RawCuda::State {
  void* library = nullptr;
  Driver driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUlibrary code = nullptr;
  CUfunction kernel = nullptr;
  CUevent event = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  std::string architecture;
  std::vector<CUdeviceptr> allocations;
  std::vector<void*> pinned;
  void* blas_library = nullptr;
  void* blas = nullptr;
  Destroy blas_destroy = nullptr;
  Sgemm sgemm = nullptr;

  ~State() {
    if (context) {
      if (stream) driver.cuStreamSynchronize_(stream);
      if (blas) blas_destroy(blas);
      if (executable) driver.cuGraphExecDestroy_(executable);
      if (graph) driver.cuGraphDestroy_(graph);
      if (event) driver.cuEventDestroy_(event);
      for (const CUdeviceptr memory : allocations) driver.cuMemFree_(memory);
      for (void* memory : pinned) driver.cuMemFreeHost_(memory);
      if (code) driver.cuLibraryUnload_(code);
      if (stream) driver.cuStreamDestroy_(stream);
      CUcontext ours = nullptr;
      driver.cuCtxPopCurrent_(&ours);
      driver.cuDevicePrimaryCtxRelease_(device);
    }
    if (library) dlclose(library);
  }
};

std::unique_ptr<RawCuda> RawCuda::open(std::string& why) {
  auto state = std::make_unique<State>();
  const auto refused = [&](std::string reason) { return why = std::move(reason), nullptr; };
  const char* named = std::getenv("WYE_CUDA_DRIVER");
  state->library = dlopen(named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!state->library) return refused("no CUDA driver");
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(state->library, "cuGetProcAddress_v2"));
  if (!get) return refused("the CUDA driver is too old");
  Driver& cu = state->driver;
  // Each by the version that the header's macro names: 12.0, when the last of these came.
#define WYE_PEER_LOAD(name)                                                                             \
  {                                                                                                     \
    void* function = nullptr;                                                                           \
    auto found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;                                                  \
    if (get(#name, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found) != CUDA_SUCCESS || !function) \
      return refused("the CUDA driver has no " #name);                                                  \
    cu.name##_ = reinterpret_cast<decltype(cu.name##_)>(function);                                      \
  }
  WYE_PEER_FUNCTIONS(WYE_PEER_LOAD)
#undef WYE_PEER_LOAD
  int major = 0, minor = 0;
  if (cu.cuInit_(0) != CUDA_SUCCESS || cu.cuDeviceGet_(&state->device, 0) != CUDA_SUCCESS ||
      cu.cuDeviceGetAttribute_(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, state->device) !=
          CUDA_SUCCESS ||
      cu.cuDeviceGetAttribute_(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, state->device) !=
          CUDA_SUCCESS ||
      cu.cuDevicePrimaryCtxRetain_(&state->context, state->device) != CUDA_SUCCESS)
    return refused("no card");
  state->architecture = "sm_" + std::to_string(major) + std::to_string(minor);
  if (cu.cuCtxPushCurrent_(state->context) != CUDA_SUCCESS ||
      cu.cuStreamCreateWithPriority_(&state->stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
    return refused("the card gives no stream");
  return std::unique_ptr<RawCuda>(new RawCuda(std::move(state)));
}

RawCuda::RawCuda(std::unique_ptr<State> state) : state_(std::move(state)) {}
RawCuda::~RawCuda() = default;

const std::string& RawCuda::architecture() const { return state_->architecture; }

bool RawCuda::load(const std::byte* cubin, const char* name) {
  const Driver& cu = state_->driver;
  CUkernel kernel = nullptr;
  return cu.cuLibraryLoadData_(&state_->code, cubin, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
             CUDA_SUCCESS &&
         cu.cuLibraryGetKernel_(&kernel, state_->code, name) == CUDA_SUCCESS &&
         cu.cuKernelGetFunction_(&state_->kernel, kernel) == CUDA_SUCCESS;
}

std::uint64_t RawCuda::memory(std::size_t bytes) {
  CUdeviceptr address = 0;
  if (state_->driver.cuMemAlloc_(&address, bytes) != CUDA_SUCCESS) return 0;
  state_->allocations.push_back(address);
  return address;
}

std::byte* RawCuda::pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (state_->driver.cuMemHostAlloc_(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP) != CUDA_SUCCESS)
    return nullptr;
  state_->pinned.push_back(memory);
  return static_cast<std::byte*>(memory);
}

bool RawCuda::launch(unsigned blocks, unsigned threads, void* parameters, std::size_t bytes) {
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                    CU_LAUNCH_PARAM_END};
  return state_->driver.cuLaunchKernel_(state_->kernel, blocks, 1, 1, threads, 1, 1, 0, state_->stream,
                                        nullptr, packed) == CUDA_SUCCESS;
}

bool RawCuda::record(int times, unsigned blocks, unsigned threads, void* parameters, std::size_t bytes) {
  const Driver& cu = state_->driver;
  void* packed[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                    CU_LAUNCH_PARAM_END};
  CUDA_KERNEL_NODE_PARAMS kernel{};
  kernel.func = state_->kernel;
  kernel.gridDimX = blocks;
  kernel.blockDimX = threads;
  kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
  kernel.extra = packed;
  if (cu.cuGraphCreate_(&state_->graph, 0) != CUDA_SUCCESS) return false;
  CUgraphNode before = nullptr;
  for (int i = 0; i < times; ++i) {
    CUgraphNode node = nullptr;
    if (cu.cuGraphAddKernelNode_(&node, state_->graph, &before, before ? 1 : 0, &kernel) != CUDA_SUCCESS)
      return false;
    before = node;
  }
  return cu.cuGraphInstantiateWithFlags_(&state_->executable, state_->graph, 0) == CUDA_SUCCESS;
}

bool RawCuda::launch_graph() {
  return state_->driver.cuGraphLaunch_(state_->executable, state_->stream) == CUDA_SUCCESS;
}

bool RawCuda::enter() {
  CUcontext was = nullptr;
  return state_->driver.cuCtxGetCurrent_(&was) == CUDA_SUCCESS &&
         state_->driver.cuCtxPushCurrent_(state_->context) == CUDA_SUCCESS;
}

bool RawCuda::leave() {
  CUcontext ours = nullptr;
  return state_->driver.cuCtxPopCurrent_(&ours) == CUDA_SUCCESS;
}

bool RawCuda::mark() {
  const Driver& cu = state_->driver;
  if (!state_->event &&
      cu.cuEventCreate_(&state_->event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC) != CUDA_SUCCESS)
    return false;
  return cu.cuEventRecord_(state_->event, state_->stream) == CUDA_SUCCESS;
}

// Looks for as long as wye does before it sleeps.
bool RawCuda::wait_for_mark() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  do {
    for (int i = 0; i < 8; ++i)
      if (state_->driver.cuEventQuery_(state_->event) == CUDA_SUCCESS) return true;
  } while (Clock::now() - begin < std::chrono::microseconds(30));
  return sleep_for_mark();
}

bool RawCuda::poll_mark() {
  CUresult result = CUDA_ERROR_NOT_READY;
  while (result == CUDA_ERROR_NOT_READY) result = state_->driver.cuEventQuery_(state_->event);
  return result == CUDA_SUCCESS;
}

bool RawCuda::sleep_for_mark() { return state_->driver.cuEventSynchronize_(state_->event) == CUDA_SUCCESS; }

bool RawCuda::write(std::uint64_t to, const void* from, std::size_t bytes) {
  std::byte* const through = pinned(bytes);
  if (!through) return false;
  std::memcpy(through, from, bytes);
  return copy(to, reinterpret_cast<std::uintptr_t>(through), bytes) && wait();
}

bool RawCuda::read(void* to, std::uint64_t from, std::size_t bytes) {
  std::byte* const through = pinned(bytes);
  if (!through || !copy(reinterpret_cast<std::uintptr_t>(through), from, bytes) || !wait()) return false;
  std::memcpy(to, through, bytes);
  return true;
}

std::uint64_t RawCuda::memory_in_use() {
  std::size_t free = 0, total = 0;
  return state_->driver.cuMemGetInfo_(&free, &total) == CUDA_SUCCESS ? total - free : 0;
}

bool RawCuda::copy(std::uint64_t to, std::uint64_t from, std::size_t bytes) {
  return state_->driver.cuMemcpyAsync_(to, from, bytes, state_->stream) == CUDA_SUCCESS;
}

bool RawCuda::wait() { return state_->driver.cuStreamSynchronize_(state_->stream) == CUDA_SUCCESS; }

bool RawCuda::open_cublas(std::string& why) {
  // Where wye is to do without it, another library has its name: then this says where it is.
  const char* named = std::getenv("WYE_BENCH_CUBLAS");
  for (const char* name : {named ? named : "libcublas.so.13", "libcublas.so.12"})
    if (!state_->blas_library) state_->blas_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!state_->blas_library) return why = "no cuBLAS", false;
  const auto create = reinterpret_cast<Create>(dlsym(state_->blas_library, "cublasCreate_v2"));
  const auto set_stream = reinterpret_cast<SetStream>(dlsym(state_->blas_library, "cublasSetStream_v2"));
  state_->blas_destroy = reinterpret_cast<Destroy>(dlsym(state_->blas_library, "cublasDestroy_v2"));
  state_->sgemm = reinterpret_cast<Sgemm>(dlsym(state_->blas_library, "cublasSgemm_v2"));
  if (!create || !set_stream || !state_->blas_destroy || !state_->sgemm || create(&state_->blas) != 0 ||
      set_stream(state_->blas, state_->stream) != 0)
    return why = "cuBLAS does not open", false;
  return true;
}

void* RawCuda::stream() const { return state_->stream; }

bool RawCuda::multiply(std::uint64_t a, std::uint64_t b, std::uint64_t c, int n) {
  const float one = 1, zero = 0;
  // Column after column it is c' = b' a'.
  return state_->sgemm(state_->blas, 0, 0, n, n, n, &one, reinterpret_cast<const float*>(b), n,
                       reinterpret_cast<const float*>(a), n, &zero, reinterpret_cast<float*>(c), n) == 0;
}

}  // namespace wye_bench
