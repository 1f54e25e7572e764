#pragma once
/// Vectors: y = a x + y.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Adds `a` times `x` to `y`, element by element.
/// Shape:   `x` and `y` have the same number of elements, any number, and do not overlap.
/// Bound:   2^-23 (|a x| + |y|) from the exact value; NaN and infinities as IEEE 754 defines them for one fused operation:
///          the product overflows only if the sum does.
/// Bits:    the same device gives the same bits.
/// Errors:  invalid_argument (sizes that differ).
WYE_API Job axpy(float a, Read<float> x, ReadWrite<float> y);

namespace reference {
/// The same in float64, on this thread: a x + y.
WYE_API std::vector<double> axpy(float a, std::span<const float> x, std::span<const float> y);
}  // namespace reference

}  // namespace wye::workloads
