#pragma once
/// Begin and end stamps: the times at which a device ran a part of a recording.
#include <wye/base/clock.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "device/timeline.hpp"

namespace wye::inline v0::device {

class DeviceBase;

/// The clock that stamps are taken from.
enum class StampClock : std::uint8_t {
  device,  ///< a clock of the device; its origin is unknown, the same for all stamps of the device
  host,    ///< the host's steady clock: times since the origin of `Instant`
};

/// Two points of one clock.
struct StampedTimes {
  Duration begin{};  ///< since the origin of the clock
  Duration end{};    ///< not before `begin`
  StampClock clock = StampClock::device;
  Duration duration() const noexcept { return end - begin; }
};

/// Two stamps of one device, which a recording takes around some of its commands. They are made
/// once and used many times: each submission replaces the times of the one before. They may outlive
/// the lanes and recordings that use them, and keep their device open. One lane at a time uses
/// them.
/// Threads: thread-safe; `Lane` calls `forget` and `note`.
class StampsBase {
 public:
  explicit StampsBase(std::shared_ptr<DeviceBase> device) : device_(std::move(device)) {}
  StampsBase(const StampsBase&) = delete;
  virtual ~StampsBase();
  const std::shared_ptr<DeviceBase>& device() const noexcept { return device_; }
  /// Returns the times of the last submission. Returns nothing while that submission is pending or
  /// in flight, if it has failed, if the device was lost before the first call that follows it, or
  /// if the driver has no times. Never blocks.
  /// Cost:    at most a few calls of the driver after each submission; later calls remember.
  std::optional<StampedTimes> read() noexcept;

  /// Forgets the times: a lane is about to submit the stamps again.
  void forget() noexcept;
  /// Notes the point that the submission of the stamps reaches.
  void note(const TimelinePoint& submitted) noexcept;

 protected:
  /// Returns the times of a submission that has completed, or nothing. Never blocks.
  virtual std::optional<StampedTimes> times() noexcept = 0;

 private:
  const std::shared_ptr<DeviceBase> device_;
  std::mutex mutex_;
  std::uint64_t uses_ = 0;  // calls of `forget`
  TimelinePoint submitted_;
  std::optional<StampedTimes> known_;
};

}  // namespace wye::device
