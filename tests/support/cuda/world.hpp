#pragma once
// The state that all parts of the stand-in share, the scripted faults, and the macros for entry
// points.
//
// An entry point is a function CUresult Name(...) of namespace standin, in the file of its subject,
// and a line in that file's WYE_ENTRY_POINTS: WYE_ENTRY(Name, the version it came with). A new file
// of this folder is found by the build.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/cuda/engine.hpp"

#pragma GCC diagnostic ignored "-Wpedantic"

// Defined in a process with ThreadSanitizer.
extern "C" {
[[gnu::weak]] void AnnotateIgnoreSyncBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreSyncEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreReadsEnd(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace standin {

/// While it exists, ThreadSanitizer ignores this thread: the stand-in's own locks, which a device
/// does not have, would order independent work, and races would not be found.
class Unseen {
 public:
  Unseen() {
    if (!AnnotateIgnoreSyncBegin) return;
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  Unseen(const Unseen&) = delete;
  ~Unseen() {
    if (!AnnotateIgnoreSyncBegin) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
};

constexpr bool has_tsan() {
#if defined(__SANITIZE_THREAD__)
  return true;
#elif defined(__has_feature)
  return __has_feature(thread_sanitizer);
#else
  return false;
#endif
}

/// Returns an environment variable; stand_in.cpp lists them.
long long setting(const char* name, long long otherwise);
/// The architecture of its devices: 90 is sm_90.
inline int multiprocessors() { return static_cast<int>(setting("WYE_STANDIN_MULTIPROCESSORS", 132)); }
inline int architecture() { return static_cast<int>(setting("WYE_STANDIN_ARCHITECTURE", 90)); }

/// Returns whether a stream that runs, or did a millisecond ago, keeps its processor.
inline bool never_sleeps() {
  static const bool never = setting("WYE_STANDIN_NEVER_SLEEPS", 0) != 0;
  return never;
}

constexpr int most_devices = 8;

/// A scripted duration. Its values are relaxed: it must not order independent work.
class Latency {
 public:
  using Clock = std::chrono::steady_clock;
  /// Sets it; 0: it is not taken.
  void set(long microseconds) { microseconds_.store(microseconds, std::memory_order_relaxed); }
  long microseconds() const { return microseconds_.load(std::memory_order_relaxed); }
  /// Returns when it has passed since `begin`.
  void spend(Clock::time_point begin = Clock::now());
  /// Returns the microseconds from each `begin` to the return of `spend`, all together.
  long spent() const { return spent_.load(std::memory_order_relaxed); }
  void reset() { set(0), spent_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<long> microseconds_{0};
  std::atomic<long> spent_{0};
};

struct Fault {
  long at = 0;  // counted since it was set
  int code = 0;
};

/// The device memory of a pool. The world is locked.
struct PoolMemory {
  std::uint64_t threshold = 0;
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
  bool ended = false;
};

/// A moment in the order of operations (order.hpp): for each stream, by its number, how many of its
/// operations are complete.
using Moment = std::map<unsigned, std::uint64_t>;

struct Allocation {
  std::size_t size = 0;
  bool pinned = false;                         // memory of the host
  int device = 0;                              // the device of memory that is not pinned
  std::shared_ptr<PoolMemory> pool = nullptr;  // its pool
  /// For shared memory: the part of a file that is mapped. Only its owners write there.
  void* file = nullptr;
  std::size_t file_size = 0;
  // Of stream-ordered memory:
  Moment allocated = {};  // when it is there
  Moment uses = {};       // when its uses are complete
  bool is_freed = false;
};

/// The twins of the kernels of one file, compiled for the devices from an architecture on (70: for
/// all).
struct Twins {
  int architecture = 70;
  std::map<std::string, const twin::Kernel*> kernels;
};

/// An object that a handle names.
struct Object {
  std::string_view kind;
  void (*destroy)(void*);
};

/// The whole state. Its mutex is never held while an operation of a stream runs: it would order
/// independent work.
struct World {
  std::mutex mutex;
  std::map<std::string, long> calls;
  std::map<std::string, Fault> faults;
  std::map<std::string, Latency, std::less<>> latencies;  // they live as long as the world
  std::map<std::string, int> asked;
  std::map<CUdeviceptr, Allocation> memory;
  std::map<CUdeviceptr, std::size_t> reservations;  // of addresses
  std::uint64_t device_bytes = 0;                   // used, or kept by pools
  std::map<void*, Object> objects;
  std::map<CUcontext, std::pair<std::thread::id, long>> partitions;  // the current ones: thread, count
  int retained = 0;
  bool created[most_devices] = {};  // the primary contexts that have been created, by device
  long left_behind = 0;             // objects of ended contexts, except broken ones
  bool initialized = false;
  std::atomic<int> sticky{0};
  std::atomic<unsigned> seed{0};
  std::atomic<int> priority{0};         // of the stream created last
  std::atomic<int> multiprocessors{0};  // of the partition created last
  std::atomic<long> order{0};
  std::map<int, int> function_attributes;  // set last, of any function
  std::vector<Twins> twins;                // of each library

  World();
};
World& world();

/// A thread's stack of contexts. It is never destroyed: static objects may call after the thread's
/// own have ended.
class Contexts {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  CUcontext back() const { return all_[size_ - 1]; }
  void push_back(CUcontext context) {
    if (size_ == most) std::abort();
    all_[size_++] = context;
  }
  void pop_back() { --size_; }

 private:
  static constexpr std::size_t most = 64;
  CUcontext all_[most] = {};
  std::size_t size_ = 0;
};
/// Returns this thread's context, and the primary context of each device.
extern constinit thread_local Contexts contexts;
CUcontext primary(int device);
/// Contexts of cuCtxCreate: the device plus 1; 0: the entry is free.
constexpr int most_own_contexts = 16;
extern std::atomic<int> own_contexts[most_own_contexts];
/// Returns whether a context is of a part of a device.
bool is_partition(CUcontext context);
/// Of a context; a part of a device is one of the first.
int device_of(CUcontext context);
inline int current_device() { return device_of(contexts.back()); }

/// Breaks the device: its context returns `code` from now on.
void break_device(int code, const char* what);
inline bool broken() { return world().sticky != 0; }
inline CUresult state() { return static_cast<CUresult>(world().sticky.load()); }
/// Spends the latency of a function, and returns the scripted result of its n-th call; 0: its own
/// result.
int scripted(const char* name);
/// Returns the latency of a name; null: none is set.
Latency* latency(std::string_view name);
/// Spends the latency of a name, if one is set.
inline void spend(std::string_view name) {
  if (Latency* const of = latency(name)) of->spend();
}

// ---- handles ----

/// Creates a T, whose kind is T::kind ("streams"), and its handle.
template <class T, class Handle, class... A>
T& create(Handle* handle, A&&... arguments) {
  auto made = std::make_unique<T>(std::forward<A>(arguments)...);
  const std::lock_guard lock(world().mutex);
  world().objects[made.get()] = {T::kind, [](void* object) { delete static_cast<T*>(object); }};
  *handle = reinterpret_cast<Handle>(made.get());
  return *made.release();
}
/// Returns the T that a handle names, or null.
template <class T, class Handle>
T* find(Handle handle) {
  const std::lock_guard lock(world().mutex);
  const auto known = world().objects.find(handle);
  return known != world().objects.end() && known->second.kind == T::kind ? reinterpret_cast<T*>(handle)
                                                                         : nullptr;
}
template <class T, class Handle>
CUresult destroy(Handle handle) {
  T* const object = find<T>(handle);
  if (!object) return CUDA_ERROR_INVALID_HANDLE;
  {
    const std::lock_guard lock(world().mutex);
    world().objects.erase(object);
  }
  delete object;
  return CUDA_SUCCESS;
}

#define WYE_NEEDS_CONTEXT                                                                            \
  if (::standin::contexts.empty() || !::standin::contexts.back()) return CUDA_ERROR_INVALID_CONTEXT; \
  if (::standin::broken()) return ::standin::state()
/// Declares `name` as the T that `handle` names; returns an error if it names none.
#define WYE_NEEDS(T, name, handle)            \
  T* const name = ::standin::find<T>(handle); \
  if (!name) return CUDA_ERROR_INVALID_HANDLE

// ---- entry points ----

struct Row {
  const char* name;
  int since;
  void* function;
};
std::vector<Row>& rows();

template <std::size_t N>
struct Name {
  char text[N]{};
  constexpr Name(const char (&name)[N]) {
    for (std::size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

/// A function that counts its calls and follows the script.
template <Name name, auto function>
struct Scripted;
template <Name name, class... A, CUresult (*function)(A...)>
struct Scripted<name, function> {
  static CUresult CUDAAPI call(A... arguments) {
    if (const int code = scripted(name.text)) return static_cast<CUresult>(code);
    return function(arguments...);
  }
};
/// The type of the function must be that of the version.
template <class Type>
Row row(const char* name, int since, std::type_identity_t<Type> function) {
  return {name, since, reinterpret_cast<void*>(function)};
}
/// A function of an older interface: its caller requested the wrong version.
CUresult CUDAAPI of_an_older_interface();

struct Entries {
  Entries(std::initializer_list<Row> some) { rows().insert(rows().end(), some); }
};
#define WYE_ENTRY(name, since) \
  ::standin::row<PFN_cu##name##_v##since>("cu" #name, since, &::standin::Scripted<"cu" #name, name>::call)
#define WYE_OLDER(name, since) \
  ::standin::Row { "cu" #name, since, reinterpret_cast<void*>(&::standin::of_an_older_interface) }
#define WYE_ENTRY_POINTS(...) \
  static const ::standin::Entries entry_points { __VA_ARGS__ }

}  // namespace standin
