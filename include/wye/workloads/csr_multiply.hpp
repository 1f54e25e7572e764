#pragma once
/// The product of a sparse matrix, in compressed sparse rows, and a vector.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Computes y = A x. Row r of A has the elements `values[k]` in columns `columns[k]`, for k from `offsets[r]` up to, and
/// without, `offsets[r + 1]`. Elements of one row may have any order, and the same column more than once.
/// Shape:   one offset more than `y` has elements, as many columns as values. `x` has one element for each column of A. Less
///          than 2^31 rows and columns, less than 2^32 values. `y` does not overlap the other memory.
/// Bound:   min(n + 2, 8300) 2^-24 sum |A| |x| over the n elements of a row, if that sum is below 2^127. Products below
///          2^-126 may count as zero. NaN and infinities propagate as in sums of products. An empty row gives 0.
///          An element whose column x does not have counts as 0. Offsets that decrease or point beyond the values give
///          results without meaning; the job accesses no other memory.
/// Bits:    the same device gives the same bits.
/// Cost:    reads A once. Scratch memory of 4 bytes for each 1,024 values. Parts of long rows are added up in parallel.
/// Errors:  invalid_argument (sizes that do not match; in memory of the host, a last offset that is not the number of
///          values; memory that overlaps).
WYE_API Job csr_multiply(Read<std::uint32_t> offsets, Read<std::uint32_t> columns, Read<float> values,
                         Read<float> x, Write<float> y);

namespace reference {
/// Returns the same in float64, on the calling thread.
WYE_API std::vector<double> csr_multiply(std::span<const std::uint32_t> offsets,
                                         std::span<const std::uint32_t> columns,
                                         std::span<const float> values, std::span<const float> x);
}  // namespace reference

}  // namespace wye::workloads
