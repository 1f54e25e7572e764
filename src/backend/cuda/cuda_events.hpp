#pragma once
/// Events of the driver.
#include <cuda.h>
#include <wye/base/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace wye::inline v0::cuda {

class CudaDevice;

/// An event of the driver. The last handle gives it back to its device.
struct CudaEvent {
  CUevent handle = nullptr;
};
using EventHandle = std::shared_ptr<CudaEvent>;

/// The events of a device. Each stays until the device ends, and is used again.
/// Threads: thread-safe.
class CudaEvents {
 public:
  explicit CudaEvents(CudaDevice& device) : device_(device) {}
  CudaEvents(const CudaEvents&) = delete;
  /// Returns an idle event, or a new one. It orders work and has no time. The context is current.
  Result<EventHandle> take() { return take(untimed_); }
  /// Returns an idle event with a time, or a new one. The context is current.
  Result<EventHandle> take_timed() { return take(timed_); }
  /// Returns the event from which times of the device are counted. The first call records it in the
  /// memory stream and waits for it. The context is current.
  Result<CUevent> origin();
  /// Destroys the events. No handle of one exists. The context is current.
  void destroy() noexcept;

 private:
  struct Idle {
    unsigned flags = 0;
    std::vector<CUevent> events = {};  // has room for all
    std::size_t count = 0;             // of all events, idle or not
  };
  Result<EventHandle> take(Idle& idle);
  void give_back(Idle& idle, CUevent event) noexcept;

  CudaDevice& device_;
  std::mutex mutex_;
  Idle untimed_{.flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC};
  Idle timed_{.flags = CU_EVENT_BLOCKING_SYNC};
  EventHandle origin_;
};

}  // namespace wye::cuda
