#pragma once
/// From a recording to the calls of the driver that do it.
#include <cstdint>

#include "backend/cuda/cuda_stream.hpp"
#include "device/device.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// Makes the plan of a recording, checked: no copy may leave a buffer. Gives nothing to the driver.
/// Errors: invalid_argument, unsupported (a grid over the limit).
Result<void> encode(const device::Recording& recording, device::DeviceBase& device, Plan& plan);

}  // namespace cuda
}  // namespace v0
}  // namespace wye
