#pragma once
/// Waiting for the device with a deadline, which the driver cannot.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "base/gate.hpp"
#include "base/worker.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;
struct CudaEvent;

/// One thread, started when somebody first waits with a deadline, sleeps in the driver for the events that are waited for,
/// one after the other; who waits is parked until its event has come or its deadline has passed. With nothing to wait for
/// the thread is parked too.
/// Threads: thread-safe.
class CudaWaiter {
 public:
  explicit CudaWaiter(CudaDevice& device) : device_(device) {}
  /// What the driver said when the event came; nothing where `until` passed before, or the device was lost.
  /// Errors: unavailable: the system gives no thread.
  Result<std::optional<CUresult>> wait(std::shared_ptr<CudaEvent> event, Instant until);
  /// Wakes who waits: the device is lost.
  void give_up() noexcept;
  /// Joins the thread. Nobody waits any more.
  void end() noexcept;

 private:
  struct Request {
    std::shared_ptr<CudaEvent> event;
    std::optional<CUresult> result;
  };
  void run();
  CudaDevice& device_;
  std::mutex mutex_;
  base::Gate asked_;
  base::Gate answered_;
  std::deque<std::shared_ptr<Request>> requests_;
  bool ending_ = false;
  std::optional<base::Worker> thread_;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
