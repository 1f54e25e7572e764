#pragma once
/// Waiting for the device with a deadline, which the driver cannot.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <cuda.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/gate.hpp"
#include "base/worker.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

class CudaDevice;
struct CudaEvent;

/// Threads that sleep in the driver for events; who waits is parked until its event has come or its deadline has passed. There
/// are as many threads as there ever were waits at the same time, up to `most_threads`: one thread would hold up who waits for
/// little behind who waits for much. With nothing to wait for they are parked.
/// Threads: thread-safe.
class CudaWaiter {
 public:
  static constexpr std::size_t most_threads = 64;
  explicit CudaWaiter(CudaDevice& device) : device_(device) {}
  /// What the driver said when the event came; nothing where `until` passed before, or the device was lost.
  /// Errors: unavailable: the system gives no thread.
  Result<std::optional<CUresult>> wait(std::shared_ptr<CudaEvent> event, Instant until);
  /// Wakes who waits: the device is lost.
  void give_up() noexcept;
  /// Joins the threads. Nobody waits any more.
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
  std::size_t idle_ = 0;  // threads that are parked
  std::vector<base::Worker> threads_;
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
