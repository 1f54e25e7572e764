#pragma once
/// A timeline that threads of this process signal.
#include <mutex>
#include <optional>

#include "base/gate.hpp"
#include "device/device.hpp"
#include "device/timeline.hpp"

namespace wye::inline v0::device {

/// A timeline without a driver: waiting threads park.
/// Threads: thread-safe.
class HostTimeline final : public Timeline {
 public:
  enum class SignaledBy : std::uint8_t { host, lane };
  explicit HostTimeline(const DeviceBase* owner, SignaledBy by = SignaledBy::host) : owner_(owner), by_(by) {}
  std::uint64_t reached() noexcept override;
  bool is_known(std::uint64_t value) noexcept override;
  Result<void> wait(std::uint64_t value, Instant until) override;
  Result<void> signal(std::uint64_t value) override;
  const DeviceBase* owner() const noexcept override { return owner_; }

  /// Raises the value, for the lane.
  /// Errors: those of `signal`.
  Result<void> reach(std::uint64_t value);
  /// Fails this timeline: waits for values that are not reached return `error`. Later failures are
  /// ignored.
  void fail(Error error);
  /// Returns the failure, if there is one.
  std::optional<Error> failure() const;

 private:
  void arrange_callbacks() noexcept override;
  const DeviceBase* owner_;
  const SignaledBy by_;
  mutable std::mutex mutex_;
  base::Gate gate_;
  std::atomic<std::uint64_t> reached_{0};
  std::optional<Error> failure_;
};

}  // namespace wye::device
