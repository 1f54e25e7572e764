#pragma once
/// Products of an activation and numbers.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets each element of `result` to gate / (1 + exp(-gate)) * up.
/// Shape:   `gate`, `up` and `result` have the same number of elements, below 2^31. `result` does not overlap the others.
/// Bound:   3e-5 of each product, which is then rounded once to the type. Numbers below 2^-126 may count as zero. Gates below -87,
///          also -infinity, count as the limit -0: the product is -0 * up. Otherwise NaN and infinities propagate.
/// Bits:    the same device gives the same bits.
/// Cost:    reads `gate` and `up` and writes `result` once.
/// Errors:  invalid_argument (numbers of elements that differ, or of 2^31 or more; memory that overlaps).
/// Source:  Shazeer, GLU variants improve transformer, arXiv:2002.05202.
WYE_API Job silu_multiply(Read<float> gate, Read<float> up, Write<float> result);
WYE_API Job silu_multiply(Read<half> gate, Read<half> up, Write<half> result);
WYE_API Job silu_multiply(Read<bfloat16> gate, Read<bfloat16> up, Write<bfloat16> result);

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> silu_multiply(std::span<const float> gate, std::span<const float> up);
WYE_API std::vector<double> silu_multiply(std::span<const half> gate, std::span<const half> up);
WYE_API std::vector<double> silu_multiply(std::span<const bfloat16> gate, std::span<const bfloat16> up);
}  // namespace reference

}  // namespace wye::workloads
