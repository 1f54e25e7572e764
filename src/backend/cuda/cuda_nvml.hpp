#pragma once
/// NVIDIA's management library, which needs no context.
#include <wye/base/dynamic_library.hpp>
#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>
#include <wye/device/device.hpp>

#include <memory>
#include <string>

namespace wye::inline v0::cuda {

/// The functions that wye calls, with the types of NVML's reference manual (version 2 of its
/// interface, which does not change). They are declared here because the build does not fetch the
/// header. Results are `nvmlReturn_t`, 0 for success; a device is an opaque pointer. Structures are
/// passed as `void*`, because a sanitizer compares the names of types, and NVML's types have other
/// names.
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
  /// nvmlDeviceGetTotalEccErrors; kind 0: corrected, 1: uncorrected; counter 0: since the driver
  /// was loaded.
  int (*ecc_errors)(Device device, int kind, int counter, unsigned long long* count) = nullptr;
  /// nvmlDeviceGetCurrentClocksThrottleReasons; bits 0x20 and 0x40: thermal, by software and by
  /// hardware.
  int (*slow_reasons)(Device device, unsigned long long* bits) = nullptr;
  int (*whole)(Device part, Device* device) = nullptr;  ///< nvmlDeviceGetDeviceHandleFromMigDeviceHandle
};

/// The initialized library.
/// Threads: thread-safe, as NVML is.
class Nvml {
 public:
  /// Opens NVML, or returns the instance that the process already has.
  /// Errors:  unavailable: it is not installed, or its error.
  static Result<std::shared_ptr<const Nvml>> open();
  Nvml(const Nvml&) = delete;
  ~Nvml();
  /// Returns the version of the driver, such as "550.54.14"; empty if NVML has none.
  std::string driver_version() const;
  /// Reads the sensors of a device, or of a part of a device (MIG). A value that the part lacks is
  /// read from the whole.
  Monitoring read(std::string device, const Uuid& uuid) const;

 private:
  explicit Nvml(DynamicLibrary library) : library_(std::move(library)) {}
  std::string error_text(const char* api, int code) const;
  DynamicLibrary library_;
  NvmlTable nvml_;
};

}  // namespace wye::cuda
