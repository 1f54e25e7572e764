#pragma once
/// Describes this backend to the default orders of devices.
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::gpu, .rank = 1};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
