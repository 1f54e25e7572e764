#pragma once
/// The checked decorator: finds misuse of any backend before the backend sees it.
#include <memory>

#include "device/device.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Wraps `lane` so that a submission with a mistake in it is refused, with `invalid_argument` or `unsupported` and a
/// sentence that names the slot: objects of another device, ranges outside a buffer, recordings still open or changed
/// after closing, arguments that do not match the schema, memory that one dispatch both writes and uses under another
/// slot, overlapping copies, grids over the limit, waits on foreign timelines. Because commands are data, all of that
/// is seen at `submit`; nothing else needs wrapping.
std::unique_ptr<LaneBase> checked(std::unique_ptr<LaneBase> lane);

/// The checks of one recording, as a pure function.
Result<void> check(const Recording& recording, const DeviceBase& device);

}  // namespace device
}  // namespace v0
}  // namespace wye
