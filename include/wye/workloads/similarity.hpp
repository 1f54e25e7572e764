#pragma once
/// The similarity of the rows of a matrix.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets `result` to the cosine of the angle between every two rows of `matrix`.
/// Shape:   `matrix` is rows x columns, row after row; `result` is rows x rows.
/// Bound:   2e-5 + (columns + 2) 2^-24. A cosine may exceed 1 by that much. The cosine with a row of zeros is 0; with a
///          row that has a NaN or an infinity, NaN.
/// Bits:    the same device gives the same bits.
/// Cost:    a product of the matrix with its transpose, and device memory for a copy of the matrix.
/// Errors:  invalid_argument (sizes that do not match, dimensions of 2^31 or more).
WYE_API Job similarity(Read<float> matrix, Write<float> result, std::uint64_t columns);

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> similarity(std::span<const float> matrix, std::uint64_t columns);
}  // namespace reference

}  // namespace wye::workloads
