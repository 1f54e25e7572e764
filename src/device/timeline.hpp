#pragma once
/// The synchronization primitive of devices, lanes and the host.
#include <wye/base/clock.hpp>
#include <wye/base/result.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "base/process.hpp"

namespace wye::inline v0::device {

class DeviceBase;
class PendingSignals;

/// Receives null when a value is reached, otherwise the failure that prevents it. The failure is
/// valid during the call.
using TimelineCallback = std::function<void(const Error* failure)>;

/// The synchronization primitive of wye: a value that only increases, or a permanent failure.
/// Threads: thread-safe.
class Timeline {
 public:
  /// Calls the remaining callbacks with `closed`. The waiter thread of the device may run it,
  /// because it holds a timeline while it polls: these calls may come after the host has dropped
  /// its last reference, unless it calls `await_release`.
  virtual ~Timeline();
  Timeline(const Timeline&) = delete;
  /// Names the process that made the timeline. A child of `fork` must not use it.
  const base::Origin& origin() const noexcept { return origin_; }
  /// Returns the value reached so far. Never blocks.
  virtual std::uint64_t reached() noexcept = 0;
  /// Returns whether `value` is reached or can no longer be reached. Never blocks.
  virtual bool is_known(std::uint64_t value) noexcept = 0;
  /// Waits until `value` is reached. A wait may precede the submission that reaches `value`.
  /// Errors: timed_out; or the failure of this timeline, once `value` can no longer be reached.
  virtual Result<void> wait(std::uint64_t value, Instant until) = 0;
  /// Calls `callback` once: with null when `value` is reached, with the failure when `value` can no
  /// longer be reached. If either is known already, `when` calls before it returns. Otherwise the
  /// thread that reaches the value calls: a thread that signals or submits, a thread of the CPU
  /// team, or the waiter thread of the device. Callbacks of one timeline run in the order of their
  /// values. A callback delays later callbacks, so it must not wait for the device. It may submit,
  /// signal, and call `when`; no lock is held. An exception of `callback` is dropped. The
  /// destructor of the timeline calls pending callbacks with `closed`, and the loss of its device
  /// with `device_lost`. In a child of `fork`, `callback` gets the error of `origin` at once.
  /// Callbacks of the parent are not called there.
  /// Throws: std::bad_alloc; then `callback` is never called.
  /// Errors: unavailable (the system gives no thread); then `callback` is never called.
  /// Cost:   no allocation of its own once as many callbacks have been pending before.
  Result<void> when(std::uint64_t value, TimelineCallback callback);
  /// Drops all callbacks without calling them, and returns whether there were any. Once this has
  /// returned, no thread of wye polls the timeline for callbacks. A callback must not call it.
  bool drop_callbacks() noexcept;
  /// Waits until the waiter thread of the device has released a timeline without callbacks. In a
  /// callback it has no effect.
  virtual void await_release() noexcept {}
  /// Notes that work in flight on its lane was abandoned. If it still is in flight when the process
  /// ends, no thread of wye calls the driver while the driver is destroyed.
  virtual void abandon() noexcept {}
  /// Raises the value from the host.
  /// Errors: invalid_argument (`value` is not larger than the value reached, or a lane signals this
  ///         timeline), device_lost.
  virtual Result<void> signal(std::uint64_t value) = 0;
  /// Returns the device whose lanes can wait for this timeline.
  virtual const DeviceBase* owner() const noexcept = 0;
  /// Returns whether the application or another driver signals it. A submission may signal it, and
  /// a wait for it blocks the device's queue until it is signaled.
  virtual bool is_foreign() const noexcept { return false; }
  /// Returns the pending signals of two devices of wye that share this foreign timeline; null for
  /// any other timeline.
  virtual PendingSignals* pending_signals() noexcept { return nullptr; }

 protected:
  Timeline() = default;
  static constexpr std::uint64_t no_value = std::numeric_limits<std::uint64_t>::max();
  /// Returns the smallest value that a callback waits for; `no_value` if there is no callback. Its
  /// reads and writes have one total order with those of the value reached. If a thread raises the
  /// value and then sees no callback for it, `when` sees the value.
  std::uint64_t first_callback() const noexcept { return first_callback_.load(); }
  /// Calls callbacks of values up to `value`, with `failure`. Returns whether there were any. No
  /// lock may be held.
  bool call_back(std::uint64_t value, const Error* failure) noexcept;

 private:
  /// Prepares for a callback that cannot be called at once.
  virtual Result<void> prepare_callbacks() { return {}; }
  /// Calls callbacks whose values are reached, and arranges the calls of the others. Follows the
  /// addition of a callback.
  virtual void arrange_callbacks() noexcept { call_back(reached(), nullptr); }
  /// Ends the polling for callbacks. Follows the removal of all of them.
  virtual void end_callbacks() noexcept {}

  struct Pending {
    std::uint64_t value = 0;
    std::uint64_t order = 0;
    TimelineCallback callback;
    bool operator<(const Pending& other) const noexcept {  // the top of a heap is the largest
      return value != other.value ? value > other.value : order > other.order;
    }
  };
  const base::Origin origin_{};
  std::mutex callbacks_mutex_;
  std::vector<Pending> callbacks_;  // a heap
  std::uint64_t callbacks_made_ = 0;
  std::atomic<std::uint64_t> first_callback_{no_value};
};

/// Returns the error of a signal with `value`, which is not larger than `reached`.
Error not_larger(std::uint64_t value, std::uint64_t reached);

/// A value of a timeline.
struct TimelinePoint {
  std::shared_ptr<Timeline> timeline;
  std::uint64_t value = 0;
};

}  // namespace wye::device
