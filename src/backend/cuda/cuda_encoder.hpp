#pragma once
/// From a recording to the calls of the driver that do it.
#include <cstdint>

#include "backend/cuda/cuda_stream.hpp"
#include "device/device.hpp"
#include "device/recording.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

/// Makes the plan of a checked recording. Submits nothing to the driver.
/// Errors: invalid_argument, unsupported (the grid of a cluster or cooperative launch does not suit the function).
Result<void> encode(const device::Recording& recording, device::DeviceBase& device, Plan& plan);

}  // namespace cuda
}  // namespace v0
}  // namespace wye
