#pragma once
/// The checked decorator: finds misuse of any backend before the backend sees it.
#include <memory>

#include "device/contract.hpp"

namespace wye {
inline namespace v0 {
namespace device {

/// Wraps `device` so that its lanes and buffers refuse, with `invalid_argument` or `unsupported` and a sentence that
/// names the slot: objects of another device, ranges outside a buffer, recordings still open or changed after closing,
/// arguments that do not match the schema, memory that is written and used twice in one dispatch, overlapping copies,
/// grids over the limit, waits on foreign timelines, sizes that overflow or exceed the device.
/// The wrapper has the identity of the device: `info()`, buffers and executables are those of `device`.
std::shared_ptr<DeviceBase> checked(std::shared_ptr<DeviceBase> device);

/// The checks of one recording, as a pure function; empty on success.
Result<void> check(const Recording& recording, const DeviceBase& device);

}  // namespace device
}  // namespace v0
}  // namespace wye
