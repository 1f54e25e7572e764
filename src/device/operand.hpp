#pragma once
/// The type-erased arguments of calls, under the name that the rooms of wye use.
#include <wye/device/buffer.hpp>
#include <wye/device/detail/operand.hpp>

namespace wye {
inline namespace v0 {

using detail::Operand;

}  // namespace v0
}  // namespace wye
