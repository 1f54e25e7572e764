// Plants one mistake per run: wye_cuda_planted NAME right|wrong. The sanitizer of the build reports
// the mistake and nothing about the correct version. Kernels are those of planted.cu; mistakes
// between streams are made by calls of the stand-in.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

#include "support/cuda/engine.hpp"
#include "support/cuda/planted_ptx.hpp"

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "planted: %s\n", what);
  std::exit(3);
}

// ---- kernels ----

const twin::Kernel& kernel(std::string_view name) {
  void* const library = dlopen(WYE_TWINS "/cuda_planted.so", RTLD_NOW | RTLD_LOCAL);
  check(library != nullptr, "there are no kernels");
  for (auto one = reinterpret_cast<const twin::Kernel* (*)()>(dlsym(library, "wye_twins"))(); one;
       one = one->next)
    if (one->name == name) return *one;
  check(false, "there is no such kernel");
  std::abort();
}

/// Runs a kernel of one block of 64 threads, or of 8 blocks on two threads of the host.
void run(const char* name, unsigned blocks = 1, std::size_t shared = 256) {
  // As long as it has to be and no longer.
  std::vector<float> out(64, 0.0f);
  unsigned count = 0;
  const void* parameters[] = {out.data(), &count};
  const twin::Launch launch{&kernel(name), parameters, {blocks}, {64}, shared, 0};
  std::string wrong[2];
  if (blocks == 1) {
    wrong[0] = twin::run(launch, 0, 1);
  } else {
    std::thread other([&] { wrong[1] = twin::run(launch, 1, 2); });
    wrong[0] = twin::run(launch, 0, 2);
    other.join();
  }
  check(wrong[0].empty() && wrong[1].empty(), "the engine sees it");
}

// ---- streams ----

template <class Function>
Function entry(const char* name, int version) {
  static void* const driver = dlopen(WYE_STAND_IN_CUDA, RTLD_NOW | RTLD_LOCAL);
  check(driver != nullptr, "there is no stand-in");
  const auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(dlsym(driver, "cuGetProcAddress_v2"));
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  check(get(name, &function, version, 0, &status) == CUDA_SUCCESS, name);
  return reinterpret_cast<Function>(function);
}
#define WYE_CALL(name, version, ...) \
  check(entry<PFN_cu##name##_v##version>("cu" #name, version)(__VA_ARGS__) == CUDA_SUCCESS, #name)

constexpr std::size_t words = 1u << 16, size = 4 * words;

/// Two streams, memory of the device, pinned memory.
struct Rig {
  CUcontext context{};
  CUstream a{}, b{};
  CUevent event{};
  CUmemoryPool pool{};
  CUdeviceptr memory{};
  void *from{}, *to{};

  Rig() {
    WYE_CALL(Init, 2000, 0);
    WYE_CALL(DevicePrimaryCtxRetain, 7000, &context, 0);
    WYE_CALL(CtxPushCurrent, 4000, context);
    for (CUstream* stream : {&a, &b})
      WYE_CALL(StreamCreateWithPriority, 5050, stream, CU_STREAM_NON_BLOCKING, 0);
    WYE_CALL(EventCreate, 2000, &event, 0);
    CUmemPoolProps properties{};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    WYE_CALL(MemPoolCreate, 11020, &pool, &properties);
    WYE_CALL(MemAllocFromPoolAsync, 11020, &memory, size, pool, a);
    WYE_CALL(MemHostAlloc, 2020, &from, size, 0);
    WYE_CALL(MemHostAlloc, 2020, &to, size, 0);
    std::memset(from, 1, size);
    synchronize();
  }
  void synchronize() const {
    for (CUstream stream : {a, b}) WYE_CALL(StreamSynchronize, 2000, stream);
  }
  ~Rig() {
    for (CUstream stream : {a, b}) WYE_CALL(StreamDestroy, 4000, stream);
    WYE_CALL(EventDestroy, 4000, event);
    for (void* memory_of_host : {from, to}) WYE_CALL(MemFreeHost, 2000, memory_of_host);
    WYE_CALL(MemPoolDestroy, 11020, pool);
    WYE_CALL(DevicePrimaryCtxRelease, 11000, 0);
  }
};

CUdeviceptr address(void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

/// Stream B copies the writes of stream A after a delay. Returns whether the copy is complete.
bool second_stream_after(bool waits, std::chrono::milliseconds later) {
  const Rig rig;
  WYE_CALL(MemcpyAsync, 4000, rig.memory, address(rig.from), size, rig.a);
  if (waits) {
    WYE_CALL(EventRecord, 2000, rig.event, rig.a);
    WYE_CALL(StreamWaitEvent, 3020, rig.b, rig.event, 0);
  }
  if (later.count() != 0) std::this_thread::sleep_for(later);
  WYE_CALL(MemcpyAsync, 4000, address(rig.to), rig.memory, size, rig.b);
  rig.synchronize();
  const bool all = std::memcmp(rig.from, rig.to, size) == 0;
  WYE_CALL(MemFreeAsync, 11020, rig.memory, rig.a);
  return all;
}

/// Stream B copies the writes of stream A. Returns whether the copy is complete.
bool second_stream(bool waits) { return second_stream_after(waits, {}); }

/// Like second_stream, but with such a delay that the copy is always complete. The order of A and B
/// is missing as before.
bool much_later(bool waits) { return second_stream_after(waits, std::chrono::milliseconds(5)); }

/// The host writes to the source of a copy. Returns whether the copy has the contents at the call.
bool rewritten(bool waits) {
  const Rig rig;
  WYE_CALL(MemcpyAsync, 4000, rig.memory, address(rig.from), size, rig.a);
  if (waits) rig.synchronize();
  std::memset(rig.from, 2, size);
  WYE_CALL(MemcpyAsync, 4000, address(rig.to), rig.memory, size, rig.a);
  rig.synchronize();
  const bool all =
      static_cast<const char*>(rig.to)[0] == 1 && static_cast<const char*>(rig.to)[size - 1] == 1;
  WYE_CALL(MemFreeAsync, 11020, rig.memory, rig.a);
  return all;
}

/// Stream A frees memory that stream B reads. Returns whether B has read its contents.
bool freed(bool waits) {
  const Rig rig;
  WYE_CALL(MemcpyAsync, 4000, rig.memory, address(rig.from), size, rig.a);
  WYE_CALL(EventRecord, 2000, rig.event, rig.a);
  WYE_CALL(StreamWaitEvent, 3020, rig.b, rig.event, 0);
  WYE_CALL(MemcpyAsync, 4000, address(rig.to), rig.memory, size, rig.b);
  if (waits) {
    WYE_CALL(EventRecord, 2000, rig.event, rig.b);
    WYE_CALL(StreamWaitEvent, 3020, rig.a, rig.event, 0);
  }
  WYE_CALL(MemFreeAsync, 11020, rig.memory, rig.a);
  for (CUstream stream : {rig.a, rig.b})
    if (entry<PFN_cuStreamSynchronize_v2000>("cuStreamSynchronize", 2000)(stream) != CUDA_SUCCESS) {
      std::puts("planted: wrong");  // a copy that finds its memory gone breaks the device
      std::exit(0);
    }
  return std::memcmp(rig.from, rig.to, size) == 0;
}

// ---- graphs ----

/// Launches a graph of two nodes of one kernel, with an edge between them or without. Returns the
/// second of the two numbers that they share.
unsigned two_nodes(const char* name, bool has_edge) {
  const Rig rig;
  CUlibrary library{};
  CUkernel code{};
  WYE_CALL(LibraryLoadData, 12000, &library, standin::planted_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  WYE_CALL(LibraryGetKernel, 12000, &code, library, name);
  CUgraph graph{};
  CUgraphExec executable{};
  WYE_CALL(GraphCreate, 10000, &graph, 0);
  CUDA_MEMSET_NODE_PARAMS zero{};
  zero.dst = rig.memory;
  zero.elementSize = 4;
  zero.width = 2;
  zero.height = 1;
  CUgraphNode begin{}, before{}, node{};
  WYE_CALL(GraphAddMemsetNode, 10000, &begin, graph, nullptr, 0, &zero, rig.context);
  unsigned patience = has_edge ? 1u << 12 : std::string_view(name) == "meet" ? 1u << 30 : 1u << 24;
  CUdeviceptr counts = rig.memory;
  void* parameters[] = {&counts, &patience};
  CUDA_KERNEL_NODE_PARAMS kernel_node{};
  kernel_node.kern = code;
  kernel_node.ctx = rig.context;
  kernel_node.gridDimX = kernel_node.gridDimY = kernel_node.gridDimZ = 1;
  kernel_node.blockDimX = kernel_node.blockDimY = kernel_node.blockDimZ = 1;
  kernel_node.kernelParams = parameters;
  WYE_CALL(GraphAddKernelNode, 12000, &before, graph, &begin, 1, &kernel_node);
  WYE_CALL(GraphAddKernelNode, 12000, &node, graph, has_edge ? &before : &begin, 1, &kernel_node);
  WYE_CALL(GraphInstantiateWithFlags, 11040, &executable, graph, 0);
  WYE_CALL(GraphLaunch, 10000, executable, rig.a);
  WYE_CALL(MemcpyAsync, 4000, address(rig.to), rig.memory, 8, rig.a);
  rig.synchronize();
  WYE_CALL(GraphExecDestroy, 10000, executable);
  WYE_CALL(GraphDestroy, 10000, graph);
  WYE_CALL(LibraryUnload, 12000, library);
  WYE_CALL(MemFreeAsync, 11020, rig.memory, rig.a);
  return static_cast<const unsigned*>(rig.to)[1];
}

/// Two kernels that wait for each other. Nodes that ran one after the other would not meet: with an
/// edge they do not.
bool meeting(bool at_once) { return two_nodes("meet", !at_once) == 2; }

/// Two kernels that each add to a number by a read and a write. Without an edge an addition is
/// lost.
bool missing_edge(bool has_edge) { return two_nodes("slow_add", has_edge) == 2; }

/// Two kernels on two streams that wait for each other. If the second is not loaded, its launch
/// waits for the first to end.
bool not_loaded(bool loads) {
  const Rig rig;
  CUlibrary library{};
  WYE_CALL(LibraryLoadData, 12000, &library, standin::planted_ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  CUkernel kernels[2]{};
  CUfunction functions[2]{};
  for (int i = 0; i < 2; ++i) {
    WYE_CALL(LibraryGetKernel, 12000, &kernels[i], library, i == 0 ? "meet" : "meet_too");
    WYE_CALL(KernelGetFunction, 12000, &functions[i], kernels[i]);
    if (loads) WYE_CALL(FuncLoad, 12040, functions[i]);
  }
  WYE_CALL(MemsetD32Async, 3020, rig.memory, 0, 2, rig.a);
  rig.synchronize();
  CUdeviceptr counts = rig.memory;
  unsigned patience = loads ? 1u << 30 : 1u << 20;
  void* parameters[] = {&counts, &patience};
  WYE_CALL(LaunchKernel, 4000, functions[0], 1, 1, 1, 1, 1, 1, 0, rig.a, parameters, nullptr);
  WYE_CALL(LaunchKernel, 4000, functions[1], 1, 1, 1, 1, 1, 1, 0, rig.b, parameters, nullptr);
  rig.synchronize();
  WYE_CALL(MemcpyAsync, 4000, address(rig.to), rig.memory, 8, rig.a);
  rig.synchronize();
  WYE_CALL(LibraryUnload, 12000, library);
  WYE_CALL(MemFreeAsync, 11020, rig.memory, rig.a);
  return static_cast<const unsigned*>(rig.to)[1] == 2;
}

struct Fault {
  const char* name;
  bool (*right)(bool waits);
};
constexpr Fault faults[] = {{"second_stream", second_stream},
                            {"much_later", much_later},
                            {"rewritten", rewritten},
                            {"freed", freed},
                            {"meeting", meeting},
                            {"missing_edge", missing_edge},
                            {"not_loaded", not_loaded}};

}  // namespace

/// Arguments: the name of a kernel or of a mistake between streams, then "wrong" or "right". Prints
/// whether the result is right, if that is known.
int main(int count, char** arguments) {
  check(count > 1, "which one?");
  const std::string_view name = arguments[1];
  for (const Fault& fault : faults)
    if (name == fault.name) {
      bool right = true;
      for (int round = 0; round < 20; ++round)
        right = fault.right(count > 2 && std::string_view(arguments[2]) == "right") && right;
      std::puts(right ? "planted: right" : "planted: wrong");
      return 0;
    }
  run(arguments[1], name == "plain_add" || name == "atomic_add" || name == "last_block" ? 8 : 1);
  std::puts("planted: right");  // no mistake that the engine detects
  return 0;
}
