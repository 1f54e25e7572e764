#pragma once
/// Timelines of one device: those that lanes move and those that the host moves.
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "backend/cuda/cuda_device.hpp"
#include "base/backoff.hpp"
#include "device/device.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// A lane's timeline is an event behind each value. The host's is a number: what waits for it is not given to a stream before it
/// is reached (see CudaQueue).
/// Threads: thread-safe.
class CudaTimeline final : public device::Timeline {
 public:
  enum class MovedBy : std::uint8_t { lane, host, others };
  static Result<std::shared_ptr<CudaTimeline>> create(std::shared_ptr<CudaDevice> device, MovedBy by);
  /// A timeline that any value of is reached with an event that was recorded for the host.
  static std::shared_ptr<CudaTimeline> adopt(std::shared_ptr<CudaDevice> device, EventHandle event);
  /// A timeline of another driver whose semaphore this one has too. The other one says how far it is.
  static std::shared_ptr<CudaTimeline> open(std::shared_ptr<CudaDevice> device, CUexternalSemaphore semaphore,
                                            std::shared_ptr<device::Timeline> original);
  ~CudaTimeline() override;

  /// Cost: none where all that was submitted is known to be reached, else a question to the driver or two.
  std::uint64_t reached() noexcept override;
  /// A wait that fails without the device being lost is repeated, and the event is asked meanwhile.
  /// Errors: as the contract says; that of the driver, after `base::Backoff::limit` in which it answered neither.
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  const device::DeviceBase* owner() const noexcept override { return device_.get(); }

  bool is_foreign() const noexcept override { return by_ == MovedBy::others; }
  device::Turns* turns() noexcept override { return original_ ? original_->turns() : nullptr; }
  /// What is known to be reached. Asks nobody.
  std::uint64_t seen() const noexcept { return reached_.load(std::memory_order_acquire); }
  /// The largest value that a stream was given the event of, or the host has set: it will be reached unless the device is
  /// lost.
  std::uint64_t scheduled() const noexcept { return scheduled_.load(std::memory_order_acquire); }
  /// Null of all but those of another driver: these are waited for and signalled by it.
  CUexternalSemaphore semaphore() const noexcept { return semaphore_; }

 private:
  friend class CudaQueue;
  /// What the driver last said of an event; CUDA_ERROR_NOT_READY if it has not come.
  struct Answer {
    CUresult result = CUDA_ERROR_NOT_READY;
    const char* api = "";
    bool slept = false;
  };
  Answer ask(const Mark& mark, Instant until, base::Backoff& backoff);
  /// Notes that `value` is reached.
  void raise(std::uint64_t value) noexcept;
  CudaTimeline(std::shared_ptr<CudaDevice> device, MovedBy by) : device_(std::move(device)), by_(by) {}

  std::shared_ptr<CudaDevice> device_;
  const MovedBy by_;
  static inline std::atomic<std::uint64_t> made_{0};
  const std::uint64_t id_ = ++made_;  // different for every timeline of this process
  CUexternalSemaphore semaphore_ = nullptr;
  std::shared_ptr<device::Timeline> original_;  // whose semaphore it is
  std::atomic<std::uint64_t> reached_{0};       // as far as anybody has seen
  std::atomic<std::uint64_t> scheduled_{0};
  std::optional<Error> failure_;  // why no value above `scheduled_` will come; under the queue's lock
  std::deque<Mark> marks_;        // of values that may not be reached yet; under the queue's lock
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
