#pragma once
/// What the default orders of devices are told of this backend.
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace vulkan {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::gpu, .rank = 1};

}  // namespace vulkan
}  // namespace v0
}  // namespace wye
