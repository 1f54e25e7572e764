#pragma once
/// Timelines of a device whose driver completes submissions by itself.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "device/device.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

class PendingSubmissions;
class TimelineWaiter;

/// A timeline that knows two values: the one reached, and the one that the driver was told of. Every value up to the second
/// will be reached unless the device is lost.
/// Threads: thread-safe.
class ScheduledTimeline : public Timeline, public std::enable_shared_from_this<ScheduledTimeline> {
 public:
  enum class MovedBy : std::uint8_t { lane, host, others };
  ~ScheduledTimeline() override;
  /// Moves a timeline of the host.
  Result<void> signal(std::uint64_t value) override;
  const DeviceBase* owner() const noexcept override { return device_.get(); }
  bool is_foreign() const noexcept override { return by_ == MovedBy::others; }
  MovedBy moved_by() const noexcept { return by_; }
  /// Returns the value that is known to be reached. Asks no driver.
  std::uint64_t seen() const noexcept { return reached_.load(); }
  /// Returns the largest value that the driver was told of, or that the host has set. Of a foreign timeline every value
  /// counts as told: only the driver knows.
  std::uint64_t scheduled() const noexcept { return scheduled_.load(); }

 protected:
  ScheduledTimeline(std::shared_ptr<DeviceBase> device, PendingSubmissions& pending, MovedBy by);
  /// Notes that `value` is reached.
  void raise(std::uint64_t value) noexcept;
  /// Calls callbacks of values that are seen as reached, as the destructor of a derived class does.
  void call_seen() noexcept;
  const std::shared_ptr<DeviceBase> device_;
  PendingSubmissions& pending_;

 private:
  friend class PendingSubmissions;
  friend class TimelineWaiter;
  Result<void> prepare_callbacks() override;
  void arrange_callbacks() noexcept override;
  /// Calls callbacks whose values are reached or will not be. Returns whether there were any.
  bool call_known() noexcept;
  bool call_foreign() noexcept;

  const MovedBy by_;
  std::atomic<std::uint64_t> reached_{0};
  std::atomic<std::uint64_t> scheduled_{0};
  std::optional<Error>
      failure_;  // why values above `scheduled_` will not come; written once, under the lock of `pending_`
  std::atomic<bool> has_failed_{false};
  // In the list of the waiter, under its lock:
  bool is_listed_ = false;
  ScheduledTimeline* before_ = nullptr;
  ScheduledTimeline* next_ = nullptr;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
