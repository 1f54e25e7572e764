#pragma once
/// The type-erased arguments of calls, as the rooms of wye name them.
#include <wye/device/buffer.hpp>
#include <wye/device/detail/operand.hpp>

namespace wye {
inline namespace v0 {

using detail::Operand;

}  // namespace v0
}  // namespace wye
