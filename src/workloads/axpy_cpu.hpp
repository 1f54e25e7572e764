#pragma once
/// Host code of axpy.
#include <wye/base/extent.hpp>

#include <span>

namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {

/// An item is an element.
void axpy(Range range, float a, std::span<const float> x, std::span<float> y);

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
