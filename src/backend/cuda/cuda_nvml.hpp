#pragma once
/// NVIDIA's management library, which knows of devices without a context.
#include <wye/base/dynamic_library.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>

#include <memory>
#include <string>

namespace wye {
inline namespace v0 {
namespace cuda {

/// The functions that are called, with the types of NVML's reference manual (version 2 of its interface, which does not
/// change). Its header is not part of what the build fetches, so they are declared here: results are `nvmlReturn_t`, 0 for
/// success; a device is an opaque pointer. Structures are passed as pointers to nothing known: a sanitizer compares types by their
/// names, and these are not NVML's.
struct NvmlTable {
  using Device = void*;
  /// nvmlMemory_t: bytes.
  struct Memory {
    unsigned long long total, free, used;
  };
  /// nvmlUtilization_t: percent.
  struct Utilization {
    unsigned gpu, memory;
  };
  int (*init)() = nullptr;                                     ///< nvmlInit_v2
  int (*shutdown)() = nullptr;                                 ///< nvmlShutdown
  const char* (*error_string)(int) = nullptr;                  ///< nvmlErrorString
  int (*driver_version)(char* text, unsigned size) = nullptr;  ///< nvmlSystemGetDriverVersion
  int (*by_uuid)(const char* uuid, Device* device) = nullptr;  ///< nvmlDeviceGetHandleByUUID
  int (*memory)(Device device, void* memory) = nullptr;        ///< `Memory`, nvmlDeviceGetMemoryInfo
  int (*utilization)(Device device, void* of) = nullptr;  ///< `Utilization`, nvmlDeviceGetUtilizationRates
  /// nvmlDeviceGetTemperature; sensor 0 is the processor's.
  int (*temperature)(Device device, int sensor, unsigned* celsius) = nullptr;
  /// nvmlDeviceGetTotalEccErrors; kind 0: corrected, 1: uncorrected; counter 0: since the driver was loaded.
  int (*ecc_errors)(Device device, int kind, int counter, unsigned long long* count) = nullptr;
  int (*whole)(Device part, Device* device) = nullptr;  ///< nvmlDeviceGetDeviceHandleFromMigDeviceHandle
};

/// The library, initialized.
/// Threads: thread-safe, as NVML is.
class Nvml {
 public:
  /// Opens the one of the process.
  /// Errors: unavailable: it is not there, or what it says.
  static Result<std::shared_ptr<const Nvml>> open();
  Nvml(const Nvml&) = delete;
  ~Nvml();
  /// "550.54.14"; empty where it does not say.
  std::string driver_version() const;
  /// What there is to say of a device, or of a part of one (MIG): what NVML does not say of the part, it says of the whole.
  Monitoring read(std::string device, const Uuid& uuid) const;

 private:
  explicit Nvml(DynamicLibrary library) : library_(std::move(library)) {}
  std::string words(const char* api, int code) const;
  DynamicLibrary library_;
  NvmlTable nvml_;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
