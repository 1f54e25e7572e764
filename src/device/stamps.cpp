#include "device/stamps.hpp"

#include <utility>

#include "device/device.hpp"

namespace wye::inline v0::device {

StampsBase::~StampsBase() = default;

void StampsBase::forget() noexcept {
  const TimelinePoint before = [this] {
    const std::lock_guard lock(mutex_);
    ++uses_;
    known_.reset();
    return std::exchange(submitted_, {});
  }();  // may be the last handle of its timeline, which ends without the lock
}

void StampsBase::note(const TimelinePoint& submitted) noexcept {
  const std::lock_guard lock(mutex_);
  submitted_ = submitted;
}

std::optional<StampedTimes> StampsBase::read() noexcept {
  if (device_->origin().is_inherited()) return std::nullopt;
  std::uint64_t use = 0;
  TimelinePoint submitted;
  {
    const std::lock_guard lock(mutex_);
    if (known_ || !submitted_.timeline) return known_;
    use = uses_;
    submitted = submitted_;
  }
  if (submitted.timeline->reached() < submitted.value || device_->lost()) return std::nullopt;
  const std::optional<StampedTimes> read = times();
  const std::lock_guard lock(mutex_);
  if (use != uses_) return std::nullopt;  // a later submission may have taken one of the stamps again
  if (read) {
    known_ = read;
    submitted_.timeline.reset();  // `submitted` keeps it until the lock is released
  }
  return read;
}

}  // namespace wye::device
