#pragma once
/// Describes this backend for the default orders of devices.
#include "device/backend.hpp"

namespace wye {
inline namespace v0 {
namespace null {

inline constexpr device::BackendDescriptor descriptor{.kind = device::BackendKind::none, .rank = 0};

}  // namespace null
}  // namespace v0
}  // namespace wye
