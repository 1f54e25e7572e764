#pragma once
/// Describes this backend for the default orders of devices.
#include "device/backend.hpp"

namespace wye::inline v0::cpu {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::cpu, .rank = 0};

}  // namespace wye::cpu
