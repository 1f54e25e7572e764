#pragma once
/// Describes this backend for the default orders of devices.
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace cuda {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::gpu, .rank = 0};

}  // namespace cuda
}  // namespace v0
}  // namespace wye
