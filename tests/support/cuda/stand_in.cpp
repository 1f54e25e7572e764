// A stand-in for the CUDA driver, on memory of the host, for tests: what a card would do, without one. Streams are threads with
// queues and random delays; kernels are the same text compiled for the host (host_cuda.hpp), found by the names in the code that
// is loaded. What it does not have, it does not answer.
//
// The environment says what it is like: WYE_STANDIN_VERSION (13000), WYE_STANDIN_MEMORY (bytes), WYE_STANDIN_SEED (0: no
// delays), WYE_STANDIN_ORDER (0: threads and blocks run as they are numbered; -1: the last first; others: at random, by this
// seed), WYE_STANDIN_WORKERS (1: threads of the host that run a kernel's blocks; with ThreadSanitizer 2), WYE_STANDIN_DEVICES (1), WYE_STANDIN_INIT (what cuInit answers), WYE_STANDIN_FAULTS ("cuMemcpyAsync:3:700,...": what
// the n-th call of a function answers).
#include <cuda.h>
#include <cudaTypedefs.h>
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/cuda/engine.hpp"

#pragma GCC diagnostic ignored "-Wpedantic"

namespace {

long long setting(const char* name, long long otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? std::atoll(value) : otherwise;
}

struct Fault {
  long at = 0;  // counted from when it was set
  int code = 0;
};

struct Allocation {
  std::size_t size = 0;
  bool pinned = false;
};

/// What an event marks: everything that was in a stream when it was recorded.
struct Mark {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
};

struct Pool {
  std::uint64_t used = 0, reserved = 0, threshold = 0;
};

struct Kernel {
  std::string name;
  std::size_t parameter_bytes = 0;
  std::vector<std::pair<std::size_t, std::size_t>> parameters;  // offset, size
  const twin::Kernel* twin = nullptr;
  int dynamic_shared = 48 << 10;
};

struct Library {
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
};

struct Event {
  std::shared_ptr<Mark> mark;
};

/// Everything there is. One mutex, never held while an operation of a stream runs: else it would order what nothing orders.
struct World {
  std::mutex mutex;
  std::map<std::string, long> calls;
  std::map<std::string, Fault> faults;
  std::map<std::string, int> asked;
  std::atomic<int> sticky{0};
  std::map<CUdeviceptr, Allocation> memory;
  std::uint64_t device_bytes = 0;
  std::set<void*> streams, events, pools, libraries;
  int retained = 0;
  long left_behind = 0;  // objects of contexts that ended, but for broken ones
  bool initialized = false;
  std::atomic<unsigned> seed{0};
  std::atomic<long> order{0};
  std::vector<std::map<std::string, const twin::Kernel*>> twins;  // of each library of them

  World() {
    seed = static_cast<unsigned>(setting("WYE_STANDIN_SEED", 1));
    order = static_cast<long>(setting("WYE_STANDIN_ORDER", 0));
    std::istringstream script(std::getenv("WYE_STANDIN_FAULTS") ? std::getenv("WYE_STANDIN_FAULTS") : "");
    for (std::string one; std::getline(script, one, ',');) {
      const std::size_t a = one.find(':'), b = one.rfind(':');
      if (a != b) faults[one.substr(0, a)] = {std::atol(one.c_str() + a + 1), std::atoi(one.c_str() + b + 1)};
    }
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
      auto& kernels = twins.emplace_back();
      for (const twin::Kernel* one = first ? first() : nullptr; one; one = one->next)
        kernels[one->name] = one;
    }
  }
};

World& world() {
  static World* const the_world = new World;  // streams may outlive what is static
  return *the_world;
}

thread_local std::vector<CUcontext> contexts;
int the_context;
CUcontext primary() { return reinterpret_cast<CUcontext>(&the_context); }

/// Sticky codes answer every later call that needs the context.
bool is_sticky(int code) {
  return (code >= 700 && code <= 721 && code != 701 && code != 703 && code != 704 && code != 705 &&
          code != 708 && code != 711 && code != 712 && code != 713 && code != 720) ||
         code == 214 || code == 220;
}

/// A thread that does what it is given, one after the other.
class Queue {
 public:
  /// Waits at random before what it does, where `delays` are wanted.
  explicit Queue(bool delays) : delays_(delays), random_(world().seed.load() * 7919u + ++count) {
    thread_ = std::thread([this] { run(); });
  }
  ~Queue() { end(); }
  /// Does what is left, and nothing after.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }
  void push(std::function<void()> operation) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(operation));
    changed_.notify_all();
  }
  std::shared_ptr<Mark> mark() {
    auto mark = std::make_shared<Mark>();
    push([mark] {
      const std::lock_guard lock(mark->mutex);
      mark->reached = true;
      mark->changed.notify_all();
    });
    return mark;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto operation = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (delays_ && world().seed != 0 && random_() % 16 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
      operation();
      lock.lock();
    }
  }
  static inline std::atomic<unsigned> count{0};
  const bool delays_;
  std::mt19937 random_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::thread thread_;
};

CUresult wait_for(Mark& mark);

/// A stream: its queue, and where a kernel's blocks run on several threads, those that help it. They are its own: what two
/// streams shared would order what nothing orders.
class Stream : public Queue {
 public:
  Stream() : Queue(true) {}
  ~Stream() { end(); }
  /// Runs a kernel, on the stream's thread. Returns what went wrong.
  std::string run(const twin::Launch& launch) {
    static const auto workers = static_cast<std::size_t>(setting("WYE_STANDIN_WORKERS", has_tsan() ? 2 : 1));
    const std::size_t blocks = std::size_t{launch.grid.x} * launch.grid.y * launch.grid.z;
    const std::size_t parts = std::max<std::size_t>(1, std::min(workers, blocks));
    std::vector<std::string> wrong(parts);
    while (helpers_.size() + 1 < parts) helpers_.push_back(std::make_unique<Queue>(false));
    std::vector<std::shared_ptr<Mark>> ends;
    for (std::size_t i = 1; i < parts; ++i) {
      helpers_[i - 1]->push([&launch, &wrong, i, parts] { wrong[i] = twin::run(launch, i, parts); });
      ends.push_back(helpers_[i - 1]->mark());
    }
    wrong[0] = twin::run(launch, 0, parts);
    for (const auto& end : ends) (void)wait_for(*end);
    for (const std::string& one : wrong)
      if (!one.empty()) return one;
    return "";
  }

 private:
  static constexpr bool has_tsan() {
#if defined(__SANITIZE_THREAD__)
    return true;
#elif defined(__has_feature)
    return __has_feature(thread_sanitizer);
#else
    return false;
#endif
  }
  std::vector<std::unique_ptr<Queue>> helpers_;
};

/// Waits for a mark, or for the end of the device.
CUresult wait_for(Mark& mark) {
  std::unique_lock lock(mark.mutex);
  mark.changed.wait(lock, [&] { return mark.reached; });
  return static_cast<CUresult>(world().sticky.load());
}

void break_device(int code, const char* what) {
  int none = 0;
  if (world().sticky.compare_exchange_strong(none, code) && what)
    std::fprintf(stderr, "stand-in: %s\n", what);
}
bool broken() { return world().sticky != 0; }

/// The allocation that [address, address + size) is in, or null. The world is locked.
const Allocation* find(CUdeviceptr address, std::size_t size) {
  auto next = world().memory.upper_bound(address);
  if (next == world().memory.begin()) return nullptr;
  --next;
  return address - next->first <= next->second.size && size <= next->second.size - (address - next->first)
             ? &next->second
             : nullptr;
}
bool is_known(CUdeviceptr address, std::size_t size) {
  const std::lock_guard lock(world().mutex);
  return find(address, size) != nullptr;
}

std::byte* bytes(CUdeviceptr address) { return reinterpret_cast<std::byte*>(address); }

/// Fresh memory is 0xcb and memory that was given back 0xdd: all of what is small, the ends of what is large.
void poison(void* memory, std::size_t size, int with) {
  constexpr std::size_t most = 1u << 20;
  std::memset(memory, with, std::min(size, most));
  if (size > most)
    std::memset(static_cast<std::byte*>(memory) + size - std::min(size - most, most), with,
                std::min(size - most, most));
}

std::size_t mapped(std::size_t size) { return (size + 4095) & ~std::size_t{4095}; }

void* allocate(std::size_t size, bool pinned) {
  void* memory =
      mmap(nullptr, mapped(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  poison(memory, size, 0xcb);
  const std::lock_guard lock(world().mutex);
  world().memory[reinterpret_cast<CUdeviceptr>(memory)] = {size, pinned};
  if (!pinned) world().device_bytes += size;
  return memory;
}

/// Takes it out of what is known. What is small stays where it is, poisoned, for who still reads it to be found out.
void release(CUdeviceptr address) {
  Allocation gone;
  {
    const std::lock_guard lock(world().mutex);
    const auto known = world().memory.find(address);
    if (known == world().memory.end()) return;
    gone = known->second;
    world().memory.erase(known);
    if (!gone.pinned) world().device_bytes -= gone.size;
  }
  poison(bytes(address), gone.size, 0xdd);
  static std::mutex mutex;
  static std::deque<std::pair<CUdeviceptr, std::size_t>> old;
  static std::size_t kept = 0;
  const std::lock_guard lock(mutex);
  old.push_back({address, mapped(gone.size)});
  kept += mapped(gone.size);
  while (kept > (256u << 20)) {
    munmap(bytes(old.front().first), old.front().second);
    kept -= old.front().second;
    old.pop_front();
  }
}

Stream* stream_of(CUstream handle) { return reinterpret_cast<Stream*>(handle); }
Event* event_of(CUevent handle) { return reinterpret_cast<Event*>(handle); }

/// What the n-th call of a function is to answer; 0: its own answer.
int scripted(const char* name) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  ++w.calls[name];
  const auto fault = w.faults.find(name);
  if (fault == w.faults.end() || --fault->second.at != 0) return 0;
  const int code = fault->second.code;
  w.faults.erase(fault);
  if (is_sticky(code)) w.sticky = code;
  return code;
}

bool has_context() { return !contexts.empty() && contexts.back() != nullptr; }

// ---- the driver's functions ----

CUresult Init(unsigned) {
  world().initialized = true;
  return static_cast<CUresult>(setting("WYE_STANDIN_INIT", 0));
}
CUresult DriverGetVersion(int* version) {
  *version = static_cast<int>(setting("WYE_STANDIN_VERSION", 13000));
  return CUDA_SUCCESS;
}
CUresult DeviceGetCount(int* count) {
  *count = static_cast<int>(setting("WYE_STANDIN_DEVICES", 1));
  return world().initialized ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult DeviceGet(CUdevice* device, int index) {
  if (index < 0 || index >= setting("WYE_STANDIN_DEVICES", 1)) return CUDA_ERROR_INVALID_DEVICE;
  *device = index;
  return CUDA_SUCCESS;
}
CUresult DeviceGetName(char* name, int size, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(size), "wye stand-in");
  return CUDA_SUCCESS;
}
CUresult DeviceGetUuid(CUuuid* uuid, CUdevice device) {
  for (std::size_t i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(i == 15 ? device + 1 : 0x57);
  return CUDA_SUCCESS;
}
std::size_t total_memory() { return static_cast<std::size_t>(setting("WYE_STANDIN_MEMORY", 8ll << 30)); }
CUresult DeviceTotalMem(std::size_t* size, CUdevice) {
  *size = total_memory();
  return CUDA_SUCCESS;
}
CUresult DeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      *value = static_cast<int>(setting("WYE_STANDIN_COMPUTE_MODE", 0));
      break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}
CUresult DevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  if (broken()) return static_cast<CUresult>(world().sticky.load());
  const std::lock_guard lock(world().mutex);
  ++world().retained;
  *context = primary();
  return CUDA_SUCCESS;
}
/// With its last handle a context ends, and all that was made in it.
CUresult DevicePrimaryCtxRelease(CUdevice) {
  World& w = world();
  std::set<void*> streams, events, pools, libraries;
  std::vector<CUdeviceptr> memory;
  {
    const std::lock_guard lock(w.mutex);
    if (w.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--w.retained != 0) return CUDA_SUCCESS;
    w.left_behind += broken() ? 0
                              : static_cast<long>(w.streams.size() + w.events.size() + w.pools.size() +
                                                  w.libraries.size() + w.memory.size());
    streams.swap(w.streams);
    events.swap(w.events);
    pools.swap(w.pools);
    libraries.swap(w.libraries);
    for (const auto& [address, allocation] : w.memory) memory.push_back(address);
  }
  for (void* stream : streams) delete static_cast<Stream*>(stream);
  for (void* event : events) delete static_cast<Event*>(event);
  for (void* pool : pools) delete static_cast<Pool*>(pool);
  for (void* library : libraries) delete static_cast<Library*>(library);
  for (const CUdeviceptr address : memory) release(address);
  return CUDA_SUCCESS;
}
CUresult CtxPushCurrent(CUcontext context) {
  contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult CtxPopCurrent(CUcontext* context) {
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *context = contexts.back();
  contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult CtxGetCurrent(CUcontext* context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return CUDA_SUCCESS;
}

#define WYE_NEEDS_CONTEXT                                \
  if (!has_context()) return CUDA_ERROR_INVALID_CONTEXT; \
  if (broken()) return static_cast<CUresult>(world().sticky.load())
#define WYE_NEEDS(set, handle)                                        \
  {                                                                   \
    const std::lock_guard needs_lock(world().mutex);                  \
    if (!world().set.count(handle)) return CUDA_ERROR_INVALID_HANDLE; \
  }

CUresult StreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  WYE_NEEDS_CONTEXT;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  auto* made = new Stream;
  const std::lock_guard lock(world().mutex);
  world().streams.insert(made);
  *stream = reinterpret_cast<CUstream>(made);
  return CUDA_SUCCESS;
}
CUresult StreamDestroy(CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  {
    const std::lock_guard lock(world().mutex);
    world().streams.erase(stream);
  }
  delete stream_of(stream);
  return CUDA_SUCCESS;
}
CUresult StreamSynchronize(CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  return wait_for(*stream_of(stream)->mark());
}
CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  WYE_NEEDS(events, event);
  const std::shared_ptr<Mark> mark = event_of(event)->mark;  // as it is now
  if (mark) stream_of(stream)->push([mark] { (void)wait_for(*mark); });
  return CUDA_SUCCESS;
}
CUresult StreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  if (address % 8 != 0 || !is_known(address, 8)) return CUDA_ERROR_INVALID_VALUE;
  stream_of(stream)->push([=] {
    if (!broken())
      std::atomic_ref(*reinterpret_cast<cuuint64_t*>(address)).store(value, std::memory_order_release);
  });
  return CUDA_SUCCESS;
}
CUresult EventCreate(CUevent* event, unsigned) {
  WYE_NEEDS_CONTEXT;
  auto* made = new Event;
  const std::lock_guard lock(world().mutex);
  world().events.insert(made);
  *event = reinterpret_cast<CUevent>(made);
  return CUDA_SUCCESS;
}
CUresult EventRecord(CUevent event, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  WYE_NEEDS(events, event);
  event_of(event)->mark = stream_of(stream)->mark();
  return CUDA_SUCCESS;
}
CUresult EventSynchronize(CUevent event) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(events, event);
  const std::shared_ptr<Mark> mark = event_of(event)->mark;
  return mark ? wait_for(*mark) : CUDA_SUCCESS;
}
CUresult EventDestroy(CUevent event) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(events, event);
  {
    const std::lock_guard lock(world().mutex);
    world().events.erase(event);
  }
  delete event_of(event);
  return CUDA_SUCCESS;
}

CUresult MemGetInfo(std::size_t* free, std::size_t* total) {
  WYE_NEEDS_CONTEXT;
  const std::lock_guard lock(world().mutex);
  *total = total_memory();
  *free = *total - std::min<std::size_t>(*total, world().device_bytes);
  return CUDA_SUCCESS;
}
CUresult MemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  WYE_NEEDS_CONTEXT;
  if (properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  auto* made = new Pool;
  const std::lock_guard lock(world().mutex);
  world().pools.insert(made);
  *pool = reinterpret_cast<CUmemoryPool>(made);
  return CUDA_SUCCESS;
}
CUresult MemPoolDestroy(CUmemoryPool pool) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(pools, pool);
  const std::lock_guard lock(world().mutex);
  world().pools.erase(pool);
  delete reinterpret_cast<Pool*>(pool);
  return CUDA_SUCCESS;
}
CUresult MemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(pools, pool);
  if (attribute != CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Pool*>(pool)->threshold = *static_cast<cuuint64_t*>(value);
  return CUDA_SUCCESS;
}
CUresult MemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(pools, pool);
  if (attribute != CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT && attribute != CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(world().mutex);
  *static_cast<cuuint64_t*>(value) = world().device_bytes;
  return CUDA_SUCCESS;
}
CUresult MemPoolTrimTo(CUmemoryPool pool, std::size_t) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(pools, pool);
  return CUDA_SUCCESS;
}
CUresult MemAllocFromPoolAsync(CUdeviceptr* address, std::size_t size, CUmemoryPool pool, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(pools, pool);
  WYE_NEEDS(streams, stream);
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  {
    const std::lock_guard lock(world().mutex);
    if (size > total_memory() - std::min<std::size_t>(total_memory(), world().device_bytes))
      return CUDA_ERROR_OUT_OF_MEMORY;
  }
  void* memory = allocate(size, false);
  if (!memory) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}
CUresult MemFreeAsync(CUdeviceptr address, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  if (!is_known(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  stream_of(stream)->push([address] { release(address); });
  return CUDA_SUCCESS;
}
CUresult MemHostAlloc(void** memory, std::size_t size, unsigned) {
  WYE_NEEDS_CONTEXT;
  if (size == 0) return CUDA_ERROR_INVALID_VALUE;
  *memory = allocate(size, true);
  return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult MemFreeHost(void* memory) {
  WYE_NEEDS_CONTEXT;
  if (!is_known(reinterpret_cast<CUdeviceptr>(memory), 1)) return CUDA_ERROR_INVALID_VALUE;
  release(reinterpret_cast<CUdeviceptr>(memory));
  return CUDA_SUCCESS;
}
CUresult MemHostGetDevicePointer(CUdeviceptr* address, void* memory, unsigned) {
  WYE_NEEDS_CONTEXT;
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return is_known(*address, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
/// Memory that is not pinned is refused: what a driver does with it nobody should depend on.
CUresult MemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t size, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  if (!is_known(to, size) || !is_known(from, size)) return CUDA_ERROR_INVALID_VALUE;
  stream_of(stream)->push([=] {
    if (broken()) return;
    if (!is_known(to, size) || !is_known(from, size))
      return break_device(700, "a copy begins when its memory has been given back");
    std::memcpy(bytes(to), bytes(from), size);
  });
  return CUDA_SUCCESS;
}
CUresult MemsetD32Async(CUdeviceptr to, unsigned pattern, std::size_t count, CUstream stream) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  if (to % 4 != 0 || !is_known(to, count * 4)) return CUDA_ERROR_INVALID_VALUE;
  stream_of(stream)->push([=] {
    if (broken()) return;
    if (!is_known(to, count * 4))
      return break_device(700, "a fill begins when its memory has been given back");
    std::fill_n(reinterpret_cast<unsigned*>(to), count, pattern);
  });
  return CUDA_SUCCESS;
}

/// Reads the kernels of a cubin: their names, and where their parameters lie.
CUresult read_cubin(const std::byte* image, Library& library) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (header.e_machine != 190) return CUDA_ERROR_INVALID_IMAGE;
  const unsigned sm = header.e_ident[EI_ABIVERSION] >= 8 ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
  if (sm != 90) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  const auto section = [&](std::size_t i) {
    Elf64_Shdr s;
    std::memcpy(&s, image + header.e_shoff + i * header.e_shentsize, sizeof(s));
    return s;
  };
  const Elf64_Shdr names = section(header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    const std::string name = reinterpret_cast<const char*>(image + names.sh_offset + s.sh_name);
    constexpr std::string_view prefix = ".nv.info.";
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->name = name.substr(prefix.size());
    const std::byte* at = image + s.sh_offset;
    const std::byte* const end = at + s.sh_size;
    std::map<unsigned, std::pair<std::size_t, std::size_t>> parameters;
    while (at + 4 <= end) {
      const auto format = static_cast<unsigned>(at[0]), attribute = static_cast<unsigned>(at[1]);
      std::uint16_t size = 0;
      std::memcpy(&size, at + 2, 2);
      if (format == 4 && attribute == 0x17) {
        std::uint16_t ordinal = 0, offset = 0;
        std::uint32_t word = 0;
        std::memcpy(&ordinal, at + 8, 2);
        std::memcpy(&offset, at + 10, 2);
        std::memcpy(&word, at + 12, 4);
        parameters[ordinal] = {offset, word >> 18};
      }
      at += 4 + (format == 4 ? size : 0);
    }
    for (const auto& [ordinal, where] : parameters) {
      kernel->parameters.push_back(where);
      kernel->parameter_bytes = std::max(kernel->parameter_bytes, where.first + where.second);
    }
    library.kernels[kernel->name] = std::move(kernel);
  }
  return library.kernels.empty() ? CUDA_ERROR_INVALID_IMAGE : CUDA_SUCCESS;
}

/// Reads the kernels of a text of PTX, as NVRTC writes it: "\t.param .align 8 .b8 add_param_0[16],", "\t.param .u32 add_param_1".
CUresult read_ptx(const char* code, Library& library) {
  const std::string text = code;
  if (text.find(".version") == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  const std::size_t target = text.find(".target sm_");
  if (target == std::string::npos) return CUDA_ERROR_INVALID_PTX;
  if (std::atoi(text.c_str() + target + 11) > 90) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  for (std::size_t at = text.find(".entry "); at != std::string::npos; at = text.find(".entry ", at + 1)) {
    const std::size_t open = text.find('(', at), close = text.find(')', open);
    auto kernel = std::make_unique<Kernel>();
    kernel->name = text.substr(at + 7, open - at - 7);
    std::istringstream lines(text.substr(open + 1, close - open - 1));
    for (std::string line; std::getline(lines, line);) {
      if (line.find(".param") == std::string::npos) continue;
      std::istringstream words(line);
      std::size_t align = 0, unit = 0, count = 1;
      for (std::string word; words >> word;) {
        if (word == ".align") words >> align;
        if (word.size() >= 3 && word[0] == '.' &&
            std::string_view("bsuf").find(word[1]) != std::string_view::npos)
          unit = static_cast<std::size_t>(std::atoi(word.c_str() + 2)) / 8;
        if (const std::size_t bracket = word.find('['); bracket != std::string::npos)
          count = static_cast<std::size_t>(std::atoi(word.c_str() + bracket + 1));
      }
      if (unit == 0) return CUDA_ERROR_INVALID_PTX;
      if (align == 0) align = unit;
      const std::size_t offset = (kernel->parameter_bytes + align - 1) / align * align;
      kernel->parameters.push_back({offset, unit * count});
      kernel->parameter_bytes = offset + unit * count;
    }
    library.kernels[kernel->name] = std::move(kernel);
  }
  return library.kernels.empty() ? CUDA_ERROR_INVALID_PTX : CUDA_SUCCESS;
}

bool lie_alike(const twin::Kernel& twin, const Kernel& kernel) {
  bool same = twin.parameters == kernel.parameters.size();
  for (std::size_t i = 0; same && i < kernel.parameters.size(); ++i)
    same = twin.offsets[i] == kernel.parameters[i].first && twin.sizes[i] == kernel.parameters[i].second;
  return same;
}

/// Finds the kernels' twins: the file of kernels that has them all, with parameters that lie alike, and the fewest others.
CUresult find_twins(Library& library) {
  const std::map<std::string, const twin::Kernel*>* best = nullptr;
  std::string elsewhere;
  for (const auto& twins : world().twins) {
    bool has_all = true;
    for (const auto& [name, kernel] : library.kernels) {
      const auto twin = twins.find(name);
      const bool lies_alike = twin != twins.end() && lie_alike(*twin->second, *kernel);
      if (twin != twins.end() && !lies_alike) elsewhere = name;
      has_all = has_all && lies_alike;
    }
    if (has_all && (!best || twins.size() < best->size())) best = &twins;
  }
  if (!best) {
    if (elsewhere.empty())
      std::fprintf(stderr, "stand-in: kernel '%s' has no twin for the host.\n",
                   library.kernels.begin()->first.c_str());
    else
      std::fprintf(stderr, "stand-in: the parameters of kernel '%s' lie elsewhere in its twin.\n",
                   elsewhere.c_str());
    return elsewhere.empty() ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_IMAGE;
  }
  for (const auto& [name, kernel] : library.kernels) kernel->twin = best->at(name);
  return CUDA_SUCCESS;
}

CUresult LibraryLoadData(CUlibrary* handle, const void* code, CUjit_option*, void**, unsigned,
                         CUlibraryOption*, void**, unsigned) {
  WYE_NEEDS_CONTEXT;
  auto library = std::make_unique<Library>();
  const CUresult read = std::memcmp(code, ELFMAG, SELFMAG) == 0
                            ? read_cubin(static_cast<const std::byte*>(code), *library)
                            : read_ptx(static_cast<const char*>(code), *library);
  if (read != CUDA_SUCCESS) return read;
  if (const CUresult found = find_twins(*library); found != CUDA_SUCCESS) return found;
  const std::lock_guard lock(world().mutex);
  world().libraries.insert(library.get());
  *handle = reinterpret_cast<CUlibrary>(library.release());
  return CUDA_SUCCESS;
}
CUresult LibraryUnload(CUlibrary handle) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(libraries, handle);
  const std::lock_guard lock(world().mutex);
  world().libraries.erase(handle);
  delete reinterpret_cast<Library*>(handle);
  return CUDA_SUCCESS;
}
CUresult LibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(libraries, handle);
  auto& kernels = reinterpret_cast<Library*>(handle)->kernels;
  const auto found = kernels.find(name);
  if (found == kernels.end()) return CUDA_ERROR_NOT_FOUND;
  *kernel = reinterpret_cast<CUkernel>(found->second.get());
  return CUDA_SUCCESS;
}
CUresult KernelGetFunction(CUfunction* function, CUkernel kernel) {
  WYE_NEEDS_CONTEXT;
  *function = reinterpret_cast<CUfunction>(kernel);
  return CUDA_SUCCESS;
}
CUresult KernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  WYE_NEEDS_CONTEXT;
  const auto& parameters = reinterpret_cast<Kernel*>(kernel)->parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].first;
  *size = parameters[index].second;
  return CUDA_SUCCESS;
}
CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  WYE_NEEDS_CONTEXT;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = 0; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult FuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  WYE_NEEDS_CONTEXT;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > 227 << 10)
    return CUDA_ERROR_INVALID_VALUE;
  reinterpret_cast<Kernel*>(function)->dynamic_shared = value;
  return CUDA_SUCCESS;
}
CUresult LaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                      unsigned bz, unsigned shared, CUstream stream, void** parameters, void** extra) {
  WYE_NEEDS_CONTEXT;
  WYE_NEEDS(streams, stream);
  const Kernel& kernel = *reinterpret_cast<Kernel*>(function);
  if (parameters || gx == 0 || gy == 0 || gz == 0 || gy > 65535 || gz > 65535 || bx == 0 || by == 0 ||
      bz == 0 || bx > 1024 || by > 1024 || bz > 64 || bx * by * bz > 1024 ||
      shared > static_cast<unsigned>(kernel.dynamic_shared))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::byte> block;
  if (extra) {
    if (extra[0] != CU_LAUNCH_PARAM_BUFFER_POINTER || extra[2] != CU_LAUNCH_PARAM_BUFFER_SIZE ||
        extra[4] != CU_LAUNCH_PARAM_END)
      return CUDA_ERROR_INVALID_VALUE;
    block.resize(*static_cast<std::size_t*>(extra[3]));
    std::memcpy(block.data(), extra[1], block.size());
  }
  if (block.size() != kernel.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  const twin::Kernel* const code = kernel.twin;  // the library may be unloaded when it runs
  Stream* const on = stream_of(stream);
  on->push([=, parameters = std::move(block)] {
    if (broken()) return;
    const twin::Launch launch{code, parameters.data(), {gx, gy, gz}, {bx, by, bz}, shared, world().order};
    const std::string wrong = on->run(launch);
    if (!wrong.empty()) break_device(719, wrong.c_str());
  });
  return CUDA_SUCCESS;
}

// ---- which function is meant by a name and a version ----

template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&name)[N]) { std::copy_n(name, N, text); }
};

/// A function that counts its calls and does as the script says.
template <Name name, auto function>
struct Scripted;
template <Name name, class... A, CUresult (*function)(A...)>
struct Scripted<name, function> {
  static CUresult CUDAAPI call(A... arguments) {
    if (const int code = scripted(name.text)) return static_cast<CUresult>(code);
    return function(arguments...);
  }
};
/// A function of an older interface: whoever is given it asked for the wrong one.
CUresult CUDAAPI of_an_older_interface() {
  std::fprintf(stderr, "stand-in: a function of an older interface was called.\n");
  return CUDA_ERROR_NOT_SUPPORTED;
}

struct Row {
  const char* name;
  int since;
  void* function;
};
#define WYE_ROW(name, since) \
  Row { "cu" #name, since, reinterpret_cast<void*>(&Scripted<"cu" #name, name>::call) }
#define WYE_OLDER(name, since) \
  Row { "cu" #name, since, reinterpret_cast<void*>(&of_an_older_interface) }
const Row rows[] = {WYE_ROW(Init, 2000),
                    WYE_ROW(DriverGetVersion, 2020),
                    WYE_ROW(DeviceGetCount, 2000),
                    WYE_ROW(DeviceGet, 2000),
                    WYE_ROW(DeviceGetName, 2000),
                    WYE_OLDER(DeviceGetUuid, 9020),
                    WYE_ROW(DeviceGetUuid, 11040),
                    WYE_OLDER(DeviceTotalMem, 2000),
                    WYE_ROW(DeviceTotalMem, 3020),
                    WYE_ROW(DeviceGetAttribute, 2000),
                    WYE_ROW(DevicePrimaryCtxRetain, 7000),
                    WYE_OLDER(DevicePrimaryCtxRelease, 7000),
                    WYE_ROW(DevicePrimaryCtxRelease, 11000),
                    WYE_OLDER(CtxPushCurrent, 2000),
                    WYE_ROW(CtxPushCurrent, 4000),
                    WYE_OLDER(CtxPopCurrent, 2000),
                    WYE_ROW(CtxPopCurrent, 4000),
                    WYE_ROW(CtxGetCurrent, 4000),
                    WYE_ROW(StreamCreateWithPriority, 5050),
                    WYE_OLDER(StreamDestroy, 2000),
                    WYE_ROW(StreamDestroy, 4000),
                    WYE_ROW(StreamSynchronize, 2000),
                    WYE_ROW(StreamWaitEvent, 3020),
                    WYE_OLDER(StreamWriteValue64, 9000),
                    WYE_ROW(StreamWriteValue64, 11070),
                    WYE_ROW(EventCreate, 2000),
                    WYE_ROW(EventRecord, 2000),
                    WYE_ROW(EventSynchronize, 2000),
                    WYE_OLDER(EventDestroy, 2000),
                    WYE_ROW(EventDestroy, 4000),
                    WYE_OLDER(MemGetInfo, 2000),
                    WYE_ROW(MemGetInfo, 3020),
                    WYE_ROW(MemPoolCreate, 11020),
                    WYE_ROW(MemPoolDestroy, 11020),
                    WYE_ROW(MemPoolSetAttribute, 11020),
                    WYE_ROW(MemPoolGetAttribute, 11020),
                    WYE_ROW(MemPoolTrimTo, 11020),
                    WYE_ROW(MemAllocFromPoolAsync, 11020),
                    WYE_ROW(MemFreeAsync, 11020),
                    WYE_ROW(MemHostAlloc, 2020),
                    WYE_ROW(MemFreeHost, 2000),
                    WYE_OLDER(MemHostGetDevicePointer, 2020),
                    WYE_ROW(MemHostGetDevicePointer, 3020),
                    WYE_ROW(MemcpyAsync, 4000),
                    WYE_ROW(MemsetD32Async, 3020),
                    WYE_ROW(LibraryLoadData, 12000),
                    WYE_ROW(LibraryUnload, 12000),
                    WYE_ROW(LibraryGetKernel, 12000),
                    WYE_ROW(KernelGetFunction, 12000),
                    WYE_ROW(KernelGetParamInfo, 12040),
                    WYE_ROW(FuncGetAttribute, 2020),
                    WYE_ROW(FuncSetAttribute, 9000),
                    WYE_ROW(LaunchKernel, 4000)};

}  // namespace

extern "C" {

// The one function that is found by its name.
__attribute__((visibility("default"))) CUresult CUDAAPI cuGetProcAddress_v2(
    const char* name, void** function, int version, cuuint64_t, CUdriverProcAddressQueryResult* status) {
  const int mine = static_cast<int>(setting("WYE_STANDIN_VERSION", 13000));
  {
    const std::lock_guard lock(world().mutex);
    world().asked[name] = version;
  }
  const Row* found = nullptr;
  bool known = false;
  for (const Row& row : rows)
    if (std::string_view(row.name) == name) {
      known = true;
      if (row.since <= version && row.since <= mine && (!found || found->since < row.since)) found = &row;
    }
  *function = found ? found->function : nullptr;
  *status = found   ? CU_GET_PROC_ADDRESS_SUCCESS
            : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

// What tests ask it for (stand_in.hpp).
#define WYE_EXPORT __attribute__((visibility("default")))
WYE_EXPORT void wye_standin_fail(const char* name, long nth, int code) {
  const std::lock_guard lock(world().mutex);
  world().faults[name] = {nth, code};
}
/// Forgets faults, counts, and that the device is broken.
WYE_EXPORT void wye_standin_reset() {
  const std::lock_guard lock(world().mutex);
  world().faults.clear();
  world().calls.clear();
  world().sticky = 0;
  world().left_behind = 0;
}
/// What was still there when a context ended, all kinds together.
WYE_EXPORT long wye_standin_left_behind() {
  const std::lock_guard lock(world().mutex);
  return world().left_behind;
}
WYE_EXPORT long wye_standin_calls(const char* name) {
  const std::lock_guard lock(world().mutex);
  const auto found = world().calls.find(name);
  return found == world().calls.end() ? 0 : found->second;
}
/// Objects that were made and not given back: "streams", "events", "pools", "libraries", "device", "pinned", "contexts".
WYE_EXPORT long wye_standin_alive(const char* what) {
  World& w = world();
  const std::lock_guard lock(w.mutex);
  const std::string_view name = what;
  if (name == "streams") return static_cast<long>(w.streams.size());
  if (name == "events") return static_cast<long>(w.events.size());
  if (name == "pools") return static_cast<long>(w.pools.size());
  if (name == "libraries") return static_cast<long>(w.libraries.size());
  if (name == "contexts") return w.retained;
  return static_cast<long>(std::count_if(w.memory.begin(), w.memory.end(), [&](const auto& one) {
    return one.second.pinned == (name == "pinned");
  }));
}
WYE_EXPORT int wye_standin_asked(const char* name) {
  const std::lock_guard lock(world().mutex);
  const auto found = world().asked.find(name);
  return found == world().asked.end() ? 0 : found->second;
}
/// The depth of this thread's stack of contexts.
WYE_EXPORT long wye_standin_depth() { return static_cast<long>(contexts.size()); }
WYE_EXPORT void wye_standin_push(void* context) { contexts.push_back(static_cast<CUcontext>(context)); }
WYE_EXPORT void* wye_standin_current() { return contexts.empty() ? nullptr : contexts.back(); }
WYE_EXPORT void wye_standin_pop() {
  if (!contexts.empty()) contexts.pop_back();
}
WYE_EXPORT void wye_standin_seed(unsigned seed) { world().seed = seed; }
WYE_EXPORT void wye_standin_order(long order) { world().order = order; }

}  // extern "C"
