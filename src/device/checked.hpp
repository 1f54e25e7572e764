#pragma once
/// The checked decorator: refuses invalid submissions before the backend gets them.
#include <memory>

#include "device/device.hpp"
#include "device/lane_base.hpp"
#include "device/recording.hpp"

namespace wye::inline v0::device {

/// Wraps `lane` and refuses invalid submissions: objects of another device, ranges outside a
/// buffer, recordings that are open or were changed after closing, arguments that do not match the
/// schema, memory that a dispatch writes through one slot and uses through another, overlapping
/// copies, grids over the limit, stamps with a begin or an end alone, waits and signals of other
/// devices' timelines. Because commands are data, `submit` sees all of them; buffers and executables
/// need no decorator. Backends do not repeat these checks, so `Lane::create` adds the decorator to
/// every lane.
/// Errors: invalid_argument or unsupported; the sentence names the slot, the number and the limit.
/// Cost:   one pass over the commands; none for a recording that was submitted before with the same
///         `ReplayBase`.
std::unique_ptr<LaneBase> checked(std::unique_ptr<LaneBase> lane);

/// Checks one recording for lanes of `device`, as a pure function.
/// Errors: those of `checked`.
Result<void> check(const Recording& recording, const DeviceBase& device);

}  // namespace wye::device
