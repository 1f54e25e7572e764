#pragma once
/// The stand-in for CUDA's driver, and the controls for tests.
#include <wye/base/dynamic_library.hpp>

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/cuda_loader.hpp"
#include "device/backend.hpp"
#include "support/catch.hpp"
#include "support/device/test_kernels.hpp"
#include "support/skip.hpp"

namespace wye::test {

using namespace device;
using namespace literals;
using Word = std::uint32_t;

template <class T>
T good(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().describe());
  return *std::move(result);
}

/// Checks that a message names all of it.
inline void says(const std::string& text, std::initializer_list<std::string_view> parts) {
  INFO(text);
  for (const std::string_view part : parts) {
    INFO(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

/// A variable of the environment, while it is in scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  Setting(const Setting&) = delete;
  ~Setting() { ::unsetenv(name_); }

 private:
  const char* name_;
};

/// The driver as another user of the process calls it: the primary context, current on this thread,
/// and a stream.
class RawDriver {
 public:
  RawDriver() {
    REQUIRE(cu.DevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cu.CtxPushCurrent(context) == CUDA_SUCCESS);
    REQUIRE(cu.StreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0) == CUDA_SUCCESS);
  }
  RawDriver(const RawDriver&) = delete;
  ~RawDriver() {
    cu.StreamDestroy(stream);
    cu.CtxPopCurrent(&context);
    cu.DevicePrimaryCtxRelease(0);
  }

 private:
  const std::shared_ptr<cuda::CudaDriver> driver_ = good(cuda::CudaDriver::open(WYE_STAND_IN_CUDA));

 public:
  const cuda::DriverTable& cu = driver_->cu;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

/// The calls of an application that captures a stream. wye has no use for them.
struct CaptureCalls {
  CaptureCalls() {
    const auto library = good(DynamicLibrary::open(WYE_STAND_IN_CUDA));
    const auto get = library.function<PFN_cuGetProcAddress_v12000>("cuGetProcAddress_v2");
    const auto find = [&](const char* name, int version, auto& function) {
      void* found = nullptr;
      REQUIRE(get(name, &found, version, 0, nullptr) == CUDA_SUCCESS);
      REQUIRE(found != nullptr);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
    };
    find("cuStreamBeginCapture", 10010, begin);
    find("cuStreamEndCapture", 10000, end);
  }
  PFN_cuStreamBeginCapture_v10010 begin = nullptr;
  PFN_cuStreamEndCapture_v10000 end = nullptr;
};

/// A handle of the stand-in. Its settings persist while no backend has it open.
class StandIn {
 public:
  StandIn() : library_(good(DynamicLibrary::open(WYE_STAND_IN_CUDA))) { reset(); }
  ~StandIn() { reset(); }
  void reset() const { call<void (*)()>("reset")(); }
  /// The n-th call of a function from now on answers `code` and does nothing; with 0 each call
  /// does, until another fault of this function, or `reset`. The code 0 is no fault.
  void fail(const std::string& function, long n, int code) const {
    call<void (*)(const char*, long, int)>("fail")(function.c_str(), n, code);
  }
  /// Sets a latency by its name (stand_in.cpp lists them) until `reset`.
  void latency(const std::string& name, std::chrono::microseconds duration) const {
    call<void (*)(const char*, long)>("latency")(name.c_str(), duration.count());
  }
  /// Returns how long a latency has been taken, by the stand-in's own measure.
  std::chrono::microseconds spent(const std::string& name) const {
    return std::chrono::microseconds(call<long (*)(const char*)>("spent")(name.c_str()));
  }
  long calls(const std::string& function) const {
    return call<long (*)(const char*)>("calls")(function.c_str());
  }
  int asked(const std::string& function) const {
    return call<int (*)(const char*)>("asked")(function.c_str());
  }
  int multiprocessors() const { return call<int (*)()>("multiprocessors")(); }
  /// Device memory that pools use or keep.
  Bytes reserved() const { return Bytes{static_cast<std::uint64_t>(call<long (*)()>("reserved")())}; }
  int priority() const { return call<int (*)()>("priority")(); }
  int function_attribute(int attribute) const { return call<int (*)(int)>("function_attribute")(attribute); }
  long depth() const { return call<long (*)()>("depth")(); }
  void* current() const { return call<void* (*)()>("current")(); }
  void push(void* context) const { call<void (*)(void*)>("push")(context); }
  void pop() const { call<void (*)()>("pop")(); }
  void order(long order) const { call<void (*)(long)>("order")(order); }
  void seed(unsigned seed) const { call<void (*)(unsigned)>("seed")(seed); }
  /// Has a stream call a function of the test's, in its order.
  void enqueue(CUstream stream, void (*function)(void*), void* data) const {
    REQUIRE(call<int (*)(void*, void (*)(void*), void*)>("enqueue")(stream, function, data) == 0);
  }
  /// Objects that were there when a context ended that was not broken.
  long left_behind() const { return call<long (*)()>("left_behind")(); }
  /// Returns the objects that were created and not destroyed.
  std::map<std::string, long> alive() const {
    std::map<std::string, long> all;
    for (const char* what : {"streams", "events", "pools", "libraries", "graphs", "partitions", "device",
                             "pinned", "contexts", "allocations", "reservations", "externals", "semaphores"})
      all[what] = call<long (*)(const char*)>("alive")(what);
    return all;
  }
  /// Returns how `alive` differs from an earlier result: "contexts 1, then 0"; empty if it does not.
  std::string changed_since(const std::map<std::string, long>& before) const {
    std::string text;
    for (const auto& [what, count] : alive())
      if (const long then = before.at(what); then != count)
        text += (text.empty() ? "" : "; ") + what + ' ' + std::to_string(then) + ", then " +
                std::to_string(count);
    return text;
  }

 private:
  template <class Function>
  Function call(const std::string& name) const {
    return library_.function<Function>(("wye_standin_" + name).c_str());
  }
  DynamicLibrary library_;
};

inline std::unique_ptr<Backend> cuda_backend() {
  for (const BackendEntry& entry : backend_table())
    if (entry.name == "cuda" && entry.make) return entry.make();
  throw std::runtime_error("This build has no backend 'cuda'.");
}
inline std::vector<Discovered> discover(const BackendOptions& options) {
  return cuda_backend()->discover(options);
}
inline std::vector<Discovered> discover(const std::string& driver = WYE_STAND_IN_CUDA,
                                        Isolation isolation = Isolation::shared, Partition partition = {}) {
  BackendOptions options;
  options.cuda_driver = driver;
  options.isolation = isolation;
  options.partition = partition;
  return discover(options);
}

/// Returns whether the kernels of the tests can be compiled. Reports a skip if not.
inline bool has_kernels() {
  const std::string why = no_cuda_kernels();
  if (!why.empty()) skip(why);
  return why.empty();
}

}  // namespace wye::test
