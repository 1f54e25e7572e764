#pragma once
/// Sums of the rows of a matrix with one row, or with rows of a table.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Adds `row` to each row of `x`, in place.
/// Shape:   `x` has rows as long as `row`, row after row. Lengths of rows and their number are below
///          2^31. `x` does not overlap the other memory.
/// Bound:   each sum is rounded once, to nearest, ties to even. NaN and infinities propagate. Numbers
///          and sums below 2^-126 may count as zero.
/// Bits:    the same device gives the same bits.
/// Cost:    reads and writes `x` once.
/// Errors:  invalid_argument (a size of `x` that is no multiple of that of `row`; memory that
///          overlaps).
WYE_API Job add_rows(ReadWrite<float> x, Read<float> row);
WYE_API Job add_rows(ReadWrite<half> x, Read<half> row);
WYE_API Job add_rows(ReadWrite<bfloat16> x, Read<bfloat16> row);

/// Adds to each row of `x` the row of `table` that one of `rows` names, in place.
/// Shape:   an element of `rows` for each row of `x`. `table` has rows as long as those of `x`, row
///          after row. Lengths of rows and both numbers of rows are below 2^31. Without `rows`, `x`
///          is empty. `x` does not overlap the other memory. A number that is no row of the table
///          leaves its row of `x` as it is, bit for bit. This includes 0xffffffff, which can mark
///          padding. `rows` may be on a device, so that no error reports such a number.
/// Cost:    reads a row of the table for each row of `x`, and reads and writes `x` once.
/// Errors:  invalid_argument (a size of `x` that is no multiple of the number of `rows`, or a size of
///          `table` that is no multiple of the length of rows; memory that overlaps).
WYE_API Job add_rows(ReadWrite<float> x, Read<float> table, Read<std::uint32_t> rows);
WYE_API Job add_rows(ReadWrite<half> x, Read<half> table, Read<std::uint32_t> rows);
WYE_API Job add_rows(ReadWrite<bfloat16> x, Read<bfloat16> table, Read<std::uint32_t> rows);

namespace reference {
/// The sums in float64, on this thread.
WYE_API std::vector<double> add_rows(std::span<const float> x, std::span<const float> row);
WYE_API std::vector<double> add_rows(std::span<const half> x, std::span<const half> row);
WYE_API std::vector<double> add_rows(std::span<const bfloat16> x, std::span<const bfloat16> row);
WYE_API std::vector<double> add_rows(std::span<const float> x, std::span<const float> table,
                                     std::span<const std::uint32_t> rows);
WYE_API std::vector<double> add_rows(std::span<const half> x, std::span<const half> table,
                                     std::span<const std::uint32_t> rows);
WYE_API std::vector<double> add_rows(std::span<const bfloat16> x, std::span<const bfloat16> table,
                                     std::span<const std::uint32_t> rows);
}  // namespace reference

}  // namespace wye::workloads
