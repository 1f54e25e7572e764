#pragma once
/// Normalization of the rows of a matrix.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Divides every row of `matrix` by its L2 length, in place.
/// Shape:   row after row, `columns` numbers each; any number of rows, rows of any length below 2^31.
/// Bound:   1e-5 of each element. Squares may overflow or vanish, the length does not; numbers below 2^-126 may count
///          as zero. A row of zeros stays as it is. In a row with an infinity, infinities become NaN and the others
///          zero; a row with a NaN becomes NaN.
/// Bits:    the same device gives the same bits.
/// Errors:  invalid_argument (a size that is no multiple of `columns`, dimensions of 2^31 or more).
WYE_API Job normalize(ReadWrite<float> matrix, std::uint64_t columns);

namespace reference {
/// The same in float64, on this thread.
WYE_API std::vector<double> normalize(std::span<const float> matrix, std::uint64_t columns);
}  // namespace reference

}  // namespace wye::workloads
