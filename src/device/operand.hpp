#pragma once
/// The type-erased arguments of calls, under the name that the rooms of wye use.
#include <wye/device/buffer.hpp>
#include <wye/device/detail/operand.hpp>

#include <string_view>

namespace wye::inline v0 {

using detail::Operand;

namespace device {

/// Returns "an array" and the like, for sentences.
std::string_view name(Operand::Kind kind) noexcept;

}  // namespace device

}  // namespace wye
