#pragma once
/// A timeline that the host moves: for backends whose work is done by threads of this process.
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/gate.hpp"
#include "device/device.hpp"
#include "device/timeline.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Threads: thread-safe.
class HostTimeline final : public Timeline {
 public:
  enum class MovedBy : std::uint8_t { host, lane };
  explicit HostTimeline(const DeviceBase* owner, MovedBy by = MovedBy::host) : owner_(owner), by_(by) {}
  std::uint64_t reached() noexcept override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  const DeviceBase* owner() const noexcept override { return owner_; }

  /// Moves the value up, for the lane.
  /// Errors: those of `signal`.
  Result<void> reach(std::uint64_t value);
  /// Ends this timeline: values above the one reached answer `error` from now on. The first failure stays.
  void fail(Error error);
  std::optional<Error> failure() const;
  /// Calls `then` once when `value` is reached or the timeline fails; at once, on this thread, where it already is.
  /// `then` is called without a lock held.
  void when(std::uint64_t value, std::function<void()> then);

 private:
  struct Watcher {
    std::uint64_t value;
    std::function<void()> then;
  };
  const DeviceBase* owner_;
  const MovedBy by_;
  mutable std::mutex mutex_;
  base::Gate gate_;
  std::atomic<std::uint64_t> reached_{0};
  std::optional<Error> failure_;
  std::vector<Watcher> watchers_;
};

}  // namespace device
}  // namespace v0
}  // namespace wye
