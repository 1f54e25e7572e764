#include "backend/cuda/cuda_loader.hpp"

#include <atomic>
#include <map>
#include <utility>

#include "backend/cuda/cuda_error.hpp"
#include "base/process.hpp"
#include "base/text.hpp"

namespace wye::inline v0::cuda {
namespace {

constexpr const char* system_driver = "libcuda.so.1";

/// The process that last initialized a driver, 0 if none did. CUDA does not work in its children.
constinit std::atomic<base::Generation> initialized_in{0};

Error too_old(int version) {
  return Error(Errc::unavailable,
               base::text("The CUDA version of the driver ({}) is below the oldest that wye supports ({}).",
                          version_text(version), version_text(oldest_driver)));
}

}  // namespace

std::string version_text(int version) { return base::text("{}.{}", version / 1000, version % 1000 / 10); }

Result<std::shared_ptr<CudaDriver>> CudaDriver::open(const std::string& library) {
  if (const base::Generation first = initialized_in.load(); first != 0 && first != base::generation())
    return Error(Errc::unavailable,
                 "CUDA cannot be used in a child of a process that has initialized it. Fork before the first "
                 "runtime opens, or start the child with exec.");
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<CudaDriver>> shared;
  const std::string name = library.empty() ? system_driver : library;
  // Held while the driver is opened: concurrent callers share the result.
  const std::lock_guard lock(mutex);
  if (const auto known = shared.find(name); known != shared.end())
    if (auto driver = known->second.lock()) return driver;
  auto made = make(name);
  if (made) shared[name] = *made;
  return made;
}

Result<std::shared_ptr<CudaDriver>> CudaDriver::make(const std::string& name) {
  auto library = DynamicLibrary::open(name);
  if (!library && library.error() == Errc::io)
    return Error(Errc::io, "The CUDA driver cannot be opened: " + library.error().sentence());
  if (!library)
    return Error(Errc::unavailable, "The CUDA driver is not installed: " + library.error().sentence());
  // Its threads and handlers outlive the handle, and the application or another library may use it
  // too.
  library->keep_loaded();
  auto driver = base::own(new CudaDriver(*std::move(library)));
  if (auto loaded = driver->load(); !loaded) return std::move(loaded).error();
  initialized_in.store(base::generation());
  if (const CUresult r = driver->cu.Init(0); r != CUDA_SUCCESS) {
    switch (r) {
      case CUDA_ERROR_STUB_LIBRARY:
        return failure(
            r, "cuInit",
            base::text("The CUDA driver ('{}') is the stub library of the CUDA Toolkit, which runs nothing.",
                       name));
      case CUDA_ERROR_NO_DEVICE:
        return failure(
            r, "cuInit",
            "The CUDA driver has no device. None is installed, or CUDA_VISIBLE_DEVICES hides all.");
      case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return failure(r, "cuInit", "The CUDA driver and its kernel module have different versions.");
      default: return failure(r, "cuInit", "The CUDA driver cannot be initialized.");
    }
  }
  driver->nvml_ = Nvml::open();
  return driver;
}

std::string CudaDriver::disabled_reason() const {
  return base::text("An error has disabled CUDA in this process: {} -> {} ({}).", disabled_by_,
                    meaning(disabled_with_).name, static_cast<int>(disabled_with_));
}

void CudaDriver::disable(CUresult result, const char* api) noexcept {
  const std::lock_guard lock(disabled_mutex_);
  if (disabled()) return;
  disabled_by_ = api;
  disabled_with_ = result;
  disabled_.store(true, std::memory_order_release);
}

Result<void> CudaDriver::load() {
  const base::DefaultFloatEnvironment environment;
  const auto get = library_.function<PFN_cuGetProcAddress_v12000>("cuGetProcAddress_v2");
  const auto ask_version = library_.function<PFN_cuDriverGetVersion_v2020>("cuDriverGetVersion");
  if (ask_version && ask_version(&version_) == CUDA_SUCCESS && version_ < oldest_driver)
    return too_old(version_);
  if (!get)
    return Error(
        Errc::unavailable,
        base::text("Library '{}' lacks function cuGetProcAddress_v2, which CUDA drivers have since CUDA {}.",
                   library_.name(), version_text(oldest_driver)));
  std::string missing;
  const auto find = [&](const char* name, int version) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const CUresult r = get(name, &function, version, CU_GET_PROC_ADDRESS_DEFAULT, &status);
    return r == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS ? function : nullptr;
  };
#define WYE_CUDA_FIND(name, version) \
  cu.name = reinterpret_cast<PFN_cu##name##_v##version>(find("cu" #name, version));
  WYE_CUDA_FUNCTIONS(WYE_CUDA_FIND)
  WYE_CUDA_NEWER_FUNCTIONS(WYE_CUDA_FIND)
#undef WYE_CUDA_FIND
#define WYE_CUDA_MISSING(name, version) \
  if (!cu.name) missing += missing.empty() ? "cu" #name : ", cu" #name;
  WYE_CUDA_FUNCTIONS(WYE_CUDA_MISSING)
#undef WYE_CUDA_MISSING
  if (version_ == 0 && cu.DriverGetVersion && cu.DriverGetVersion(&version_) == CUDA_SUCCESS &&
      version_ < oldest_driver)
    return too_old(version_);
  if (!missing.empty())
    return Error(Errc::unavailable, base::text("The CUDA driver '{}' lacks functions that wye needs: {}.",
                                               library_.name(), missing));
  return {};
}

}  // namespace wye::cuda
