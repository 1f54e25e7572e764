#pragma once
/// Describes this backend to the default orders of devices.
#include "device/backend.hpp"

namespace wye::inline v0::vulkan {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::gpu, .rank = 1};

}  // namespace wye::vulkan
