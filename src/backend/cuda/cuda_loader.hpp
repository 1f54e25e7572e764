#pragma once
/// The driver's library and its functions.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <wye/base/dynamic_library.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "backend/cuda/cuda_nvml.hpp"
#include "base/float_environment.hpp"

namespace wye::inline v0::cuda {

/// The functions that wye calls, each with the version in the name of its type. The loader requests
/// this version, because the newest version that the headers know may have another signature.
#define WYE_CUDA_FUNCTIONS(X)                        \
  X(Init, 2000)                                      \
  X(DriverGetVersion, 2020)                          \
  X(DeviceGetCount, 2000)                            \
  X(DeviceGet, 2000)                                 \
  X(DeviceGetName, 2000)                             \
  X(DeviceGetUuid, 11040)                            \
  X(DeviceTotalMem, 3020)                            \
  X(DeviceGetAttribute, 2000)                        \
  X(DevicePrimaryCtxRetain, 7000)                    \
  X(DevicePrimaryCtxRelease, 11000)                  \
  X(CtxCreate, 3020)                                 \
  X(CtxDestroy, 4000)                                \
  X(CtxPushCurrent, 4000)                            \
  X(CtxPopCurrent, 4000)                             \
  X(CtxGetCurrent, 4000)                             \
  X(CtxGetDevice, 2000)                              \
  X(CtxGetStreamPriorityRange, 5050)                 \
  X(StreamCreateWithPriority, 5050)                  \
  X(StreamDestroy, 4000)                             \
  X(StreamSynchronize, 2000)                         \
  X(StreamWaitEvent, 3020)                           \
  X(StreamIsCapturing, 10000)                        \
  X(ThreadExchangeStreamCaptureMode, 10010)          \
  X(EventCreate, 2000)                               \
  X(EventRecord, 2000)                               \
  X(EventQuery, 2000)                                \
  X(EventSynchronize, 2000)                          \
  X(EventDestroy, 4000)                              \
  X(EventElapsedTime, 2000)                          \
  X(MemGetInfo, 3020)                                \
  X(MemPoolCreate, 11020)                            \
  X(MemPoolDestroy, 11020)                           \
  X(MemPoolSetAttribute, 11020)                      \
  X(MemPoolGetAttribute, 11020)                      \
  X(MemPoolTrimTo, 11020)                            \
  X(MemAllocFromPoolAsync, 11020)                    \
  X(MemFreeAsync, 11020)                             \
  X(MemHostAlloc, 2020)                              \
  X(MemFreeHost, 2000)                               \
  X(MemHostGetDevicePointer, 3020)                   \
  X(MemcpyAsync, 4000)                               \
  X(MemsetD32Async, 3020)                            \
  X(LibraryLoadData, 12000)                          \
  X(LibraryUnload, 12000)                            \
  X(LibraryGetKernel, 12000)                         \
  X(KernelGetFunction, 12000)                        \
  X(FuncGetAttribute, 2020)                          \
  X(KernelSetAttribute, 12000)                       \
  X(LaunchKernel, 4000)                              \
  X(LaunchKernelEx, 11060)                           \
  X(OccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(OccupancyMaxPotentialClusterSize, 11070)         \
  X(OccupancyMaxActiveClusters, 11070)               \
  X(GraphCreate, 10000)                              \
  X(GraphDestroy, 10000)                             \
  X(GraphAddKernelNode, 12000)                       \
  X(GraphKernelNodeSetAttribute, 11000)              \
  X(GraphAddMemcpyNode, 10000)                       \
  X(GraphAddMemsetNode, 10000)                       \
  X(GraphAddEmptyNode, 10000)                        \
  X(GraphAddEventRecordNode, 11010)                  \
  X(GraphInstantiateWithFlags, 11040)                \
  X(GraphExecKernelNodeSetParams, 12000)             \
  X(GraphExecMemcpyNodeSetParams, 10020)             \
  X(GraphExecMemsetNodeSetParams, 10020)             \
  X(GraphExecDestroy, 10000)                         \
  X(GraphLaunch, 10000)                              \
  X(MemGetAllocationGranularity, 10020)              \
  X(MemCreate, 10020)                                \
  X(MemRelease, 10020)                               \
  X(MemExportToShareableHandle, 10020)               \
  X(MemAddressReserve, 10020)                        \
  X(MemAddressFree, 10020)                           \
  X(MemMap, 10020)                                   \
  X(MemUnmap, 10020)                                 \
  X(MemSetAccess, 10020)                             \
  X(MemFree, 3020)                                   \
  X(ImportExternalMemory, 10000)                     \
  X(ExternalMemoryGetMappedBuffer, 10000)            \
  X(DestroyExternalMemory, 10000)                    \
  X(ImportExternalSemaphore, 10000)                  \
  X(SignalExternalSemaphoresAsync, 10000)            \
  X(WaitExternalSemaphoresAsync, 10000)              \
  X(DestroyExternalSemaphore, 10000)                 \
  X(DeviceCanAccessPeer, 4000)                       \
  X(MemPoolSetAccess, 11020)                         \
  X(MemcpyPeerAsync, 4000)
/// Functions that the oldest supported driver lacks. They are null if the driver lacks them.
#define WYE_CUDA_NEWER_FUNCTIONS(X)   \
  X(KernelGetParamInfo, 12040)        \
  X(FuncLoad, 12040)                  \
  X(DeviceGetDevResource, 12040)      \
  X(DevSmResourceSplitByCount, 12040) \
  X(DevResourceGenerateDesc, 12040)   \
  X(GreenCtxCreate, 12040)            \
  X(GreenCtxDestroy, 12040)           \
  X(CtxFromGreenCtx, 12040)           \
  X(GreenCtxStreamCreate, 12050)

struct DriverTable {
#define WYE_CUDA_MEMBER(name, version) base::DriverFunction<PFN_cu##name##_v##version> name;
  WYE_CUDA_FUNCTIONS(WYE_CUDA_MEMBER)
  WYE_CUDA_NEWER_FUNCTIONS(WYE_CUDA_MEMBER)
#undef WYE_CUDA_MEMBER
};

/// Lets this thread make calls that a capture of the application otherwise fails, as allocations,
/// loads and waits ("potentially unsafe API calls", cuda.h at cuThreadExchangeStreamCaptureMode).
/// The destructor restores the mode of the thread. No call of wye has part in a capture.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverTable& cu) noexcept
      : cu_(cu), is_exchanged_(cu.ThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS) {}
  RelaxedCapture(const RelaxedCapture&) = delete;
  ~RelaxedCapture() {
    if (is_exchanged_) (void)cu_.ThreadExchangeStreamCaptureMode(&mode_);
  }

 private:
  const DriverTable& cu_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool is_exchanged_;
};

/// The oldest supported driver, in the driver's numbering.
inline constexpr int oldest_driver = 12020;

/// Returns a version as text, such as "12.2".
std::string version_text(int version);

/// An initialized driver.
/// Threads: thread-safe.
class CudaDriver {
 public:
  /// Opens `library`; the system's driver if it is empty. All callers of the process share one
  /// handle for each library.
  /// Errors:  unavailable: no driver, a driver that is too old, no device, or an error of the
  ///          driver.
  static Result<std::shared_ptr<CudaDriver>> open(const std::string& library);
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;

  DriverTable cu;
  int version() const noexcept { return version_; }
  /// Returns whether an error has disabled CUDA in this process. Then no device can be opened.
  bool disabled() const noexcept { return disabled_.load(std::memory_order_acquire); }
  /// Returns a sentence with the error that has disabled CUDA, with its call and its code. Requires
  /// `disabled()`.
  std::string disabled_reason() const;
  /// Disables CUDA in this process. Later calls have no effect.
  void disable(CUresult result, const char* api) noexcept;
  /// Returns NVML, or the error of opening it. It is opened with the driver.
  const Result<std::shared_ptr<const Nvml>>& nvml() const noexcept { return nvml_; }

 private:
  explicit CudaDriver(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<CudaDriver>> make(const std::string& library);
  Result<void> load();
  DynamicLibrary library_;
  int version_ = 0;
  Result<std::shared_ptr<const Nvml>> nvml_ = Error(Errc::unavailable, "NVML was not opened.");
  std::mutex disabled_mutex_;
  const char* disabled_by_ = "";  // the name of a call; written once, before `disabled_`
  CUresult disabled_with_ = CUDA_SUCCESS;
  std::atomic<bool> disabled_{false};
};

}  // namespace wye::cuda
