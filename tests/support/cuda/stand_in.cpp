// A stand-in for the CUDA driver in host memory, for tests: the behaviour of a card, without one.
// Streams are threads with queues and random delays. Kernels are the same text compiled for the
// host (host_cuda.hpp), found by the names in the loaded code. Functions that it lacks are not
// found.
//
// Environment variables set its properties: WYE_STANDIN_VERSION (13000), WYE_STANDIN_MEMORY
// (bytes), WYE_STANDIN_SEED (0: no delays), WYE_STANDIN_ORDER (0: threads and blocks run in the
// order of their numbers; -1: in reverse; others: at random, by this seed), WYE_STANDIN_WORKERS (1:
// host threads that run a kernel's blocks; with ThreadSanitizer 2), WYE_STANDIN_NODES (4: nodes of
// a graph that run at once; with ThreadSanitizer 2, because it limits the number of fibers),
// WYE_STANDIN_DEVICES (1; at most 8), WYE_STANDIN_PEERS (1: devices reach each other's memory),
// WYE_STANDIN_UUID (32 hexadecimal digits: the first device's), WYE_STANDIN_TIMELINES (1: timeline
// semaphores are supported), WYE_STANDIN_ARCHITECTURE (90), WYE_STANDIN_MULTIPROCESSORS (132),
// WYE_STANDIN_REGISTERS (32: of one thread of any kernel), WYE_STANDIN_COOPERATIVE (1: cooperative
// launches are supported), WYE_STANDIN_REQUIRED_CLUSTER (0: the width of the cluster that all code
// requires), WYE_STANDIN_MIG (0; 1: a device is a part of one), WYE_STANDIN_TAKEN (0; 1: another
// process uses the devices exclusively), WYE_STANDIN_DONE_WHEN_ASKED (0; 1: cuEventQuery waits for
// the event), WYE_STANDIN_NEVER_SLEEPS (0; 1: a stream that runs, or did a millisecond ago, keeps
// its processor, as prompt as a device), WYE_STANDIN_INIT (the result of cuInit),
// WYE_STANDIN_FAULTS ("cuMemcpyAsync:3:700,...": the result of the n-th call of a function; 0: of
// each call), WYE_STANDIN_LATENCIES ("cuLaunchKernel:2,kernel:200,...": durations in microseconds).
//
// The names of latencies: a function ("cuMemAlloc": each call), "init" (the first call of cuInit),
// "context" (its creation), "load" (of a kernel into a context: by its first launch there, or
// before by cuFuncLoad; also the name of its faults), "kernel/add" (at least, of each kernel of
// this name), "kernel" (of each other kernel, and product of cuBLAS), "copy",
// "cuEventSynchronize/wake" (the interrupt and the sleeper's return: of a thread that had to wait
// for an event with CU_EVENT_BLOCKING_SYNC) and "cuStreamSynchronize/wake" (the same for a stream).
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>

#include "support/cuda/capture.hpp"
#include "support/cuda/memory.hpp"
#include "support/cuda/stream.hpp"

namespace standin {

constinit thread_local Contexts contexts;

long long setting(const char* name, long long otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::atoll(value) : otherwise;
}

World::World() {
  seed = static_cast<unsigned>(setting("WYE_STANDIN_SEED", 1));
  order = static_cast<long>(setting("WYE_STANDIN_ORDER", 0));
  std::istringstream script(std::getenv("WYE_STANDIN_FAULTS") ? std::getenv("WYE_STANDIN_FAULTS") : "");
  for (std::string one; std::getline(script, one, ',');) {
    const std::size_t a = one.find(':'), b = one.rfind(':');
    if (a != b) faults[one.substr(0, a)] = {std::atol(one.c_str() + a + 1), std::atoi(one.c_str() + b + 1)};
  }
  std::istringstream durations(std::getenv("WYE_STANDIN_LATENCIES") ? std::getenv("WYE_STANDIN_LATENCIES")
                                                                    : "");
  for (std::string one; std::getline(durations, one, ',');)
    if (const std::size_t at = one.find(':'); at != std::string::npos)
      latencies[one.substr(0, at)].set(std::atol(one.c_str() + at + 1));
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&setting), &self) == 0) return;
  const std::filesystem::path folder = std::filesystem::path(self.dli_fname).parent_path() / "twins";
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    void* library = dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      std::fprintf(stderr, "stand-in: %s\n", dlerror());
      continue;
    }
    const auto first = reinterpret_cast<const twin::Kernel* (*)()>(dlsym(library, "wye_twins"));
    Twins& its = twins.emplace_back();
    const std::string name = file.path().stem();
    if (const std::size_t at = name.find(".sm_"); at != std::string::npos)
      its.architecture = std::atoi(name.c_str() + at + 4);
    for (const twin::Kernel* one = first ? first() : nullptr; one; one = one->next)
      its.kernels[one->name] = one;
  }
}

World& world() {
  static World* const the_world = new World;  // streams may outlive static objects
  return *the_world;
}

int the_contexts[most_devices];
CUcontext primary(int device) { return reinterpret_cast<CUcontext>(&the_contexts[device]); }
std::atomic<int> own_contexts[most_own_contexts];
bool is_partition(CUcontext context) {
  const std::lock_guard lock(world().mutex);
  return world().objects.count(context) != 0;
}
int device_of(CUcontext context) {
  for (const std::atomic<int>& of : own_contexts)
    if (reinterpret_cast<CUcontext>(const_cast<std::atomic<int>*>(&of)) == context) return of - 1;
  for (int device = 0; device < most_devices; ++device)
    if (context == primary(device)) return device;
  return 0;
}

/// Sticky codes are the result of every later call that needs the context.
bool is_sticky(int code) {
  return (code >= 700 && code <= 721 && code != 701 && code != 703 && code != 704 && code != 705 &&
          code != 708 && code != 711 && code != 712 && code != 713 && code != 720) ||
         code == 214 || code == 220;
}

void break_device(int code, const char* what) {
  int none = 0;
  if (world().sticky.compare_exchange_strong(none, code) && what)
    std::fprintf(stderr, "stand-in: %s\n", what);
}
void Latency::spend(Clock::time_point begin) {
  using std::chrono::microseconds;
  const auto end = begin + microseconds(this->microseconds());
  if (!never_sleeps()) std::this_thread::sleep_until(end - microseconds(100));  // a sleeper is late by less
  while (Clock::now() < end)
    if (!never_sleeps()) std::this_thread::yield();
  spent_.fetch_add(static_cast<long>(std::chrono::duration_cast<microseconds>(Clock::now() - begin).count()),
                   std::memory_order_relaxed);
}
Latency* latency(std::string_view name) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  const auto found = w.latencies.find(name);
  return found == w.latencies.end() || found->second.microseconds() == 0 ? nullptr : &found->second;
}
int scripted(const char* name) {
  spend(name);
  if (const int code = prohibited(name)) return code;
  World& w = world();
  const std::lock_guard lock(w.mutex);
  ++w.calls[name];
  const auto fault = w.faults.find(name);
  if (fault == w.faults.end()) return 0;
  const int code = fault->second.code;
  if (fault->second.at != 0) {
    if (--fault->second.at != 0) return 0;
    w.faults.erase(fault);
  }
  if (is_sticky(code)) w.sticky = code;
  return code;
}

std::vector<Row>& rows() {
  static std::vector<Row> all;
  return all;
}

CUresult CUDAAPI of_an_older_interface() {
  std::fprintf(stderr, "stand-in: a function of an older interface was called.\n");
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace standin

using namespace standin;

extern "C" {

// The only function that is found by its name.
__attribute__((visibility("default"))) CUresult CUDAAPI cuGetProcAddress_v2(
    const char* name, void** function, int version, cuuint64_t, CUdriverProcAddressQueryResult* status) {
  const int mine = static_cast<int>(setting("WYE_STANDIN_VERSION", 13000));
  {
    const std::lock_guard lock(world().mutex);
    world().asked[name] = version;
  }
  const Row* found = nullptr;
  bool known = false;
  for (const Row& row : rows())
    if (std::string_view(row.name) == name) {
      known = true;
      if (row.since <= version && row.since <= mine && (!found || found->since < row.since)) found = &row;
    }
  *function = nullptr;
  if (version > mine) return CUDA_ERROR_INVALID_VALUE;
  if (found) *function = found->function;
  if (status)
    *status = found   ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;  // found or not
}

// Queries of the tests (stand_in.hpp).
#define WYE_EXPORT __attribute__((visibility("default")))
WYE_EXPORT void wye_standin_fail(const char* name, long nth, int code) {
  const std::lock_guard lock(world().mutex);
  world().faults[name] = {nth, code};
}
WYE_EXPORT void wye_standin_latency(const char* name, long microseconds) {
  const std::lock_guard lock(world().mutex);
  world().latencies[name].set(microseconds);
}
/// Returns how long a latency has been spent, in microseconds.
WYE_EXPORT long wye_standin_spent(const char* name) {
  const std::lock_guard lock(world().mutex);
  return world().latencies[name].spent();
}
/// Clears faults, latencies, counts, captures, and the broken state of the device.
WYE_EXPORT void wye_standin_reset() {
  end_captures();
  const std::lock_guard lock(world().mutex);
  for (auto& [name, latency] : world().latencies) latency.reset();
  world().initialized = false;
  world().faults.clear();
  world().calls.clear();
  world().sticky = 0;
  world().left_behind = 0;
  world().partitions.clear();
}
/// Returns the number of objects that existed when a context ended, of all kinds.
WYE_EXPORT long wye_standin_left_behind() {
  const std::lock_guard lock(world().mutex);
  return world().left_behind;
}
WYE_EXPORT long wye_standin_calls(const char* name) {
  const std::lock_guard lock(world().mutex);
  const auto found = world().calls.find(name);
  return found == world().calls.end() ? 0 : found->second;
}
/// Returns the number of live objects: "device" and "pinned" memory, "contexts", and any other kind
/// ("streams").
WYE_EXPORT long wye_standin_alive(const char* what) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  const std::string_view name = what;
  if (name == "contexts") return w.retained;
  if (name == "reservations") return static_cast<long>(w.reservations.size());
  if (name == "device" || name == "pinned")
    return std::count_if(w.memory.begin(), w.memory.end(),
                         [&](const auto& one) { return one.second.pinned == (name == "pinned"); });
  return std::count_if(w.objects.begin(), w.objects.end(),
                       [&](const auto& one) { return one.second.kind == name; });
}
WYE_EXPORT int wye_standin_asked(const char* name) {
  const std::lock_guard lock(world().mutex);
  const auto found = world().asked.find(name);
  return found == world().asked.end() ? 0 : found->second;
}
/// Returns the depth of this thread's stack of contexts.
WYE_EXPORT long wye_standin_depth() { return static_cast<long>(contexts.size()); }
WYE_EXPORT void wye_standin_push(void* context) { contexts.push_back(static_cast<CUcontext>(context)); }
WYE_EXPORT void* wye_standin_current() { return contexts.empty() ? nullptr : contexts.back(); }
WYE_EXPORT void wye_standin_pop() {
  if (!contexts.empty()) contexts.pop_back();
}
/// Returns the last value of a function's attribute; -1000 if it was never set.
WYE_EXPORT int wye_standin_function_attribute(int attribute) {
  const auto found = world().function_attributes.find(attribute);
  return found == world().function_attributes.end() ? -1000 : found->second;
}
/// Returns the priority of the stream created last.
WYE_EXPORT int wye_standin_priority() { return world().priority; }
/// Returns the size of the partition created last.
WYE_EXPORT int wye_standin_multiprocessors() { return world().multiprocessors; }
/// Returns the device memory that pools use or keep.
WYE_EXPORT long wye_standin_reserved() {
  const std::lock_guard lock(world().mutex);
  return static_cast<long>(world().device_bytes);
}
WYE_EXPORT void wye_standin_seed(unsigned seed) { world().seed = seed; }
// Queries of its libraries.
WYE_EXPORT int wye_standin_scripted(const char* name) { return scripted(name); }
WYE_EXPORT int wye_standin_is_known(CUdeviceptr address, std::size_t size) { return is_known(address, size); }
WYE_EXPORT int wye_standin_enqueue(void* stream, void (*function)(void*), void* data) {
  Stream* const on = find<Stream>(static_cast<CUstream>(stream));
  if (!on || contexts.empty() || broken()) return 1;
  Latency* const lasts = latency("kernel");
  on->push([=] {
    const auto begin = Latency::Clock::now();
    function(data);
    if (lasts) lasts->spend(begin);
  });
  return 0;
}

WYE_EXPORT void wye_standin_order(long order) { world().order = order; }

}  // extern "C"
