#pragma once
/// Waits with a deadline, which the driver does not offer.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace wye::inline v0::cuda {

class CudaDevice;
struct CudaEvent;

/// Threads that sleep in the driver for events. The caller parks until its event completes or its
/// deadline passes. There is one thread for each lane with a wait, up to `most_threads`: the values
/// of a lane are reached in order, but one thread for all lanes would delay short waits behind long
/// ones. Idle threads are parked. WAITING.md has the measurements.
/// Threads: thread-safe.
class CudaWaiter {
 public:
  static constexpr std::size_t most_threads = 64;
  explicit CudaWaiter(CudaDevice& device);
  CudaWaiter(const CudaWaiter&) = delete;
  /// Waits for the event of `value` and returns the driver's result. Returns nothing if `until`
  /// passes first or the device is lost.
  /// Errors:  unavailable: the system refuses a thread.
  Result<std::optional<CUresult>> wait(std::uint64_t timeline, std::uint64_t value,
                                       const std::shared_ptr<CudaEvent>& event, Instant until);
  /// Wakes all callers because the device is lost.
  void give_up() noexcept;
  /// Ends the threads. Requires that no caller waits. Does not join threads that sleep in the
  /// driver for a lost device, because the driver may never return.
  void end() noexcept;

 private:
  struct Request;
  struct Shared;
  const CudaDevice& device_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace wye::cuda
