#pragma once
/// The state of wye::Sequence: commands that are submitted many times.
#include <wye/device/executable.hpp>

#include <cstddef>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye::inline v0::device {

/// A recording that can be changed at any time. Submissions in flight keep their arguments.
/// Threads: one thread at a time.
/// Cost:    the first change after a submission copies the recording if the submission is in
///          flight.
class SequenceState {
 public:
  explicit SequenceState(const std::shared_ptr<DeviceBase>& device) : replay_(device->create_replay()) {}
  /// Opens the recording and returns it, to add commands or replace arguments.
  Recording& open();
  /// Closes the recording and returns its submission, with the driver's form of it.
  Submission submission();
  const Recording& recording() const noexcept { return *recording_; }

 private:
  std::shared_ptr<ReplayBase> replay_;
  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
  std::vector<std::shared_ptr<Recording>> before_;  // earlier recordings, in flight or idle
};

/// Returns the element count of the first operand that the kernel writes, or 1.
std::uint64_t items_of(const Executable& executable, const Arguments& arguments);

}  // namespace wye::device
