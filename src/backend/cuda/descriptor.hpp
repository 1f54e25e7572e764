#pragma once
/// Describes this backend for the default orders of devices.
#include "device/backend.hpp"

namespace wye::inline v0::cuda {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::gpu, .rank = 0};

}  // namespace wye::cuda
