#pragma once
/// Timelines of one device: those that lanes move and those that the host moves.
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "backend/cuda/cuda_device.hpp"
#include "base/backoff.hpp"
#include "device/scheduled_timeline.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// An event, and the value that is reached with it.
struct Mark {
  std::uint64_t value = 0;
  EventHandle event;
  explicit operator bool() const noexcept { return event != nullptr; }
};

/// A lane's timeline is an event behind each value. The host's is a number: a submission that waits for it is not given to a
/// stream before it is reached (see device::PendingSubmissions).
/// Threads: thread-safe.
class CudaTimeline final : public device::ScheduledTimeline {
 public:
  static Result<std::shared_ptr<CudaTimeline>> create(std::shared_ptr<CudaDevice> device, SignaledBy by);
  /// Creates a timeline whose every value is reached with an event that was recorded for the host.
  static std::shared_ptr<CudaTimeline> adopt(std::shared_ptr<CudaDevice> device, EventHandle event);
  /// Opens a timeline of another driver whose semaphore this driver has too. `original` tells the value reached.
  static std::shared_ptr<CudaTimeline> open(std::shared_ptr<CudaDevice> device, CUexternalSemaphore semaphore,
                                            std::shared_ptr<device::Timeline> original);
  ~CudaTimeline() override;

  /// Cost: none if all that was submitted is known to be reached, otherwise a question to the driver or two.
  std::uint64_t reached() noexcept override;
  /// Repeats a wait that fails without the device being lost, and asks for the event meanwhile.
  /// Errors: as the contract says; that of the driver, after `base::Backoff::limit` without an answer to either.
  Result<void> wait(std::uint64_t value, Instant until) override;
  device::PendingSignals* pending_signals() noexcept override {
    return original_ ? original_->pending_signals() : nullptr;
  }
  /// Returns null unless another driver moves the timeline: waits and signals go to that semaphore.
  CUexternalSemaphore semaphore() const noexcept { return semaphore_; }

  /// Notes that `event` was recorded behind `value`, which is scheduled next.
  void mark(std::uint64_t value, EventHandle event);
  /// Returns the event behind `value`, which was scheduled; nothing if the value is reached.
  Mark mark_of(std::uint64_t value);
  /// Forgets the events of values that are seen as reached.
  void drop_reached() noexcept;

 private:
  /// What the driver last said of an event; CUDA_ERROR_NOT_READY if it has not come.
  struct Answer {
    CUresult result = CUDA_ERROR_NOT_READY;
    const char* api = "";
    bool slept = false;
  };
  CudaTimeline(std::shared_ptr<CudaDevice> device, SignaledBy by);
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device_); }
  Answer ask(const Mark& mark, Instant until, base::Backoff& backoff);
  /// Returns the first mark that is not known to be reached; nothing if all are.
  Mark first_mark() noexcept;

  static inline std::atomic<std::uint64_t> made_{0};
  const std::uint64_t id_ = ++made_;  // different for every timeline of this process
  CUexternalSemaphore semaphore_ = nullptr;
  std::shared_ptr<device::Timeline> original_;  // whose semaphore it is
  std::mutex marks_mutex_;
  std::deque<Mark> marks_;  // of values that may not be reached yet
};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
