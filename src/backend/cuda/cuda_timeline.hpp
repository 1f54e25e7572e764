#pragma once
/// Timelines of one device, moved by lanes or by the host.
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "backend/cuda/cuda_device.hpp"
#include "backend/cuda/cuda_polling.hpp"
#include "base/backoff.hpp"
#include "device/scheduled_timeline.hpp"

namespace wye::inline v0::cuda {

/// An event, and the timeline value that its completion reaches.
struct Mark {
  std::uint64_t value = 0;
  EventHandle event;
  explicit operator bool() const noexcept { return event != nullptr; }
};

/// A timeline. A lane's timeline has an event for each value. A timeline that the host moves is a
/// number: a submission that waits for it is pending until the number is reached (see
/// device::PendingSubmissions).
/// Threads: thread-safe.
class CudaTimeline final : public device::ScheduledTimeline {
 public:
  static Result<std::shared_ptr<CudaTimeline>> create(std::shared_ptr<CudaDevice> device, SignaledBy by);
  /// Creates a timeline that reaches every value when `event`, an event of the application,
  /// completes.
  static std::shared_ptr<CudaTimeline> adopt(std::shared_ptr<CudaDevice> device, EventHandle event);
  /// Opens a timeline of another driver by its imported semaphore. `original` knows the value
  /// reached.
  static std::shared_ptr<CudaTimeline> open(std::shared_ptr<CudaDevice> device, CUexternalSemaphore semaphore,
                                            std::shared_ptr<device::Timeline> original);
  ~CudaTimeline() override;

  /// Cost:    none if all submitted values are known to be reached, otherwise one or two queries of
  ///          the driver.
  std::uint64_t reached() noexcept override;
  bool is_known(std::uint64_t value) noexcept override {
    return (original_ && original_->is_known(value)) || ScheduledTimeline::is_known(value);
  }
  /// Waits for `value`. Repeats a wait that fails while the device is not lost, and queries the
  /// event meanwhile.
  /// Errors:  those of the contract; the driver's after `base::Backoff::limit` of failures.
  Result<void> wait(std::uint64_t value, Instant until) override;
  device::PendingSignals* pending_signals() noexcept override {
    return original_ ? original_->pending_signals() : nullptr;
  }
  /// Returns the semaphore for waits and signals if another driver moves the timeline, otherwise
  /// null.
  CUexternalSemaphore semaphore() const noexcept { return semaphore_; }

  /// Adds the event of `value`, the next value to be scheduled.
  void mark(std::uint64_t value, EventHandle event);
  /// Returns the event of a scheduled value; an empty mark if the value is reached.
  Mark mark_of(std::uint64_t value);
  /// Drops the events of values that are known to be reached.
  void drop_reached() noexcept;

 private:
  /// The last result of the driver for an event. CUDA_ERROR_NOT_READY if it has not completed.
  struct QueryResult {
    CUresult result = CUDA_ERROR_NOT_READY;
    const char* api = "";
    bool slept = false;      ///< and the event has not completed
    bool has_slept = false;  ///< in the driver, or until a thread that does so answered
  };
  CudaTimeline(std::shared_ptr<CudaDevice> device, SignaledBy by);
  CudaDevice& cuda() const noexcept { return static_cast<CudaDevice&>(*device_); }
  QueryResult query_or_sleep(const Mark& mark, Duration polling, Instant until, base::Backoff& backoff);
  /// Returns the first mark that is not known to be reached; an empty mark if all are.
  Mark first_mark() noexcept;

  static inline std::atomic<std::uint64_t> made_{0};
  const std::uint64_t id_ = ++made_;  // unique in the process
  CUexternalSemaphore semaphore_ = nullptr;
  std::shared_ptr<device::Timeline> original_;  // owner of the semaphore
  std::mutex marks_mutex_;
  RecentWaits waits_;
  std::deque<Mark> marks_;  // of values that are not known to be reached
};

}  // namespace wye::cuda
