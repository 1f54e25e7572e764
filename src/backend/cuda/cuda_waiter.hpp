#pragma once
/// Waiting for the device with a deadline, which the driver cannot.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;
struct CudaEvent;

/// Threads that sleep in the driver for events; who waits is parked until its event has come or its deadline has passed. There
/// is one for each lane that is waited for, up to `most_threads`: the values of a lane come in order, and one thread for all
/// lanes would hold up who waits for little behind who waits for much. With nothing to wait for they are parked. (WAITING.md has
/// what was measured beside it.)
/// Threads: thread-safe.
class CudaWaiter {
 public:
  static constexpr std::size_t most_threads = 64;
  explicit CudaWaiter(CudaDevice& device);
  CudaWaiter(const CudaWaiter&) = delete;
  /// What the driver said when the event behind `value` of a timeline came; nothing where `until` passed before, or the device
  /// was lost.
  /// Errors: unavailable: the system gives no thread.
  Result<std::optional<CUresult>> wait(std::uint64_t timeline, std::uint64_t value,
                                       const std::shared_ptr<CudaEvent>& event, Instant until);
  /// Wakes who waits: the device is lost.
  void give_up() noexcept;
  /// Ends the threads, when nobody waits any more. Those that sleep in the driver for a lost device are not waited for: nothing
  /// says that it ever answers them.
  void end() noexcept;

 private:
  struct Request;
  struct Shared;
  const CudaDevice& device_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
