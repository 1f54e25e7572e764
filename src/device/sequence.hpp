#pragma once
/// Commands that are submitted again and again: what is behind wye::Sequence.
#include <wye/device/executable.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// A recording that can be changed at any time: what is in flight keeps what it was submitted with.
/// Threads: one thread at a time.
/// Cost:    the first change after a submission copies the recording where that is still in flight.
class SequenceState {
 public:
  explicit SequenceState(const std::shared_ptr<DeviceBase>& device) : replay_(device->create_replay()) {}
  /// The recording, open, to be added to or given other arguments.
  Recording& open();
  /// The recording as it is now, closed, with what the device has made of it.
  Submission submission();
  const Recording& recording() const noexcept { return *recording_; }

 private:
  std::shared_ptr<ReplayBase> replay_;
  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
  std::vector<std::shared_ptr<Recording>> before_;  // what may still be in flight, and what it leaves behind
};

/// The element count of the first operand that the kernel writes, or 1.
std::uint64_t items_of(const Executable& executable, const Arguments& arguments);

}  // namespace device
}  // namespace v0
}  // namespace wye
