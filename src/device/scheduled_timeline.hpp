#pragma once
/// Timelines of a device with a driver.
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "device/device.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::device {

class PendingSubmissions;
class TimelineWaiter;

/// A timeline with two values: the value reached, and the largest value submitted to the driver. It
/// reaches every value up to the second unless the device is lost.
/// Threads: thread-safe.
class ScheduledTimeline : public Timeline, public std::enable_shared_from_this<ScheduledTimeline> {
 public:
  enum class SignaledBy : std::uint8_t { lane, host, others };
  ~ScheduledTimeline() override;
  bool is_known(std::uint64_t value) noexcept override;
  /// Raises a timeline that the host signals.
  Result<void> signal(std::uint64_t value) override;
  const DeviceBase* owner() const noexcept override { return device_.get(); }
  void await_release() noexcept override;
  bool is_foreign() const noexcept override { return by_ == SignaledBy::others; }
  SignaledBy signaled_by() const noexcept { return by_; }
  /// Returns the value that is known to be reached. Calls no driver.
  std::uint64_t seen() const noexcept { return reached_.load(); }
  /// Returns the largest value that was submitted to the driver or that the host has signaled.
  /// Every value of a foreign timeline counts as submitted: only the driver knows.
  std::uint64_t scheduled() const noexcept { return scheduled_.load(); }
  void abandon() noexcept override;

 protected:
  ScheduledTimeline(std::shared_ptr<DeviceBase> device, PendingSubmissions& pending, SignaledBy by);
  /// Notes that `value` is reached.
  void raise(std::uint64_t value) noexcept;
  /// Calls callbacks of values up to `seen`. The destructor of a derived class does the same.
  void call_seen() noexcept;
  const std::shared_ptr<DeviceBase> device_;
  PendingSubmissions& pending_;

 private:
  friend class PendingSubmissions;
  friend class TimelineWaiter;
  Result<void> prepare_callbacks() override;
  void arrange_callbacks() noexcept override;
  void end_callbacks() noexcept override;
  /// Calls callbacks whose values are reached or cannot be reached. Returns whether there were any.
  bool call_known() noexcept;
  bool call_foreign() noexcept;

  const SignaledBy by_;
  std::atomic<std::uint64_t> reached_{0};
  std::atomic<std::uint64_t> scheduled_{0};
  // The failure that prevents values above `scheduled_`. Written once, under the lock of
  // `pending_`.
  std::optional<Error> failure_;
  std::atomic<bool> has_failed_{false};
  // In the list of the waiter, under its lock:
  bool is_listed_ = false;
  ScheduledTimeline* before_ = nullptr;
  ScheduledTimeline* next_ = nullptr;
};

}  // namespace wye::device
