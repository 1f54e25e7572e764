#pragma once
/// Translates recordings into calls of the driver.
#include <cstdint>

#include "backend/cuda/cuda_stream.hpp"
#include "device/device.hpp"
#include "device/recording.hpp"

namespace wye::inline v0::cuda {

/// Writes the steps of a checked recording into `plan`. Calls no function of the driver.
/// Errors: invalid_argument, unsupported (the grid of a cluster or cooperative launch does not suit
///         the function).
Result<void> encode(const device::Recording& recording, device::DeviceBase& device, Plan& plan);

}  // namespace wye::cuda
