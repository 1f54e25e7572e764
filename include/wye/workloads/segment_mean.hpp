#pragma once
/// Means of consecutive rows of a matrix.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets row s of `result` to the mean of the rows of x from `offsets[s]` up to, and without,
/// `offsets[s + 1]`. Zeros are the mean of an empty segment.
/// Shape:   `offsets` has one element more than there are segments: it begins with 0, does not
///          decrease and ends with the number of rows, as those of `ragged_attention`. `x` and
///          `result` have rows of equal length, row after row. x has at most 2^22 rows. Lengths of
///          rows and the number of segments are below 2^31. `result` does not overlap the other
///          memory. Offsets on a device are not checked. Rows that x does not have count in no
///          segment, and a segment that ends before it begins is empty. If offsets decrease, the
///          means of segments of 512 rows and more are undefined. No memory outside the arguments is
///          accessed.
/// Bound:   min(n + 2, 250) 2^-24 of the mean of |x| over the n rows of the segment, if the sum of |x|
///          is below 2^127. Sums are float32. Means of 16 bits are rounded once more. Numbers below
///          2^-126 may count as zero. NaN and infinities propagate as in sums.
/// Bits:    the same device gives the same bits for a segment, alone and beside any others. Rows are
///          added in the same order on all devices.
/// Cost:    reads `x` and writes `result` once. Scratch memory of 4 bytes for each 512 elements of x.
///          If a segment has 512 rows or more, or if `offsets` is on a device, parts of the segments
///          are added up in parallel, in a step of their own.
/// Errors:  invalid_argument (a size of `result` that is no multiple of the number of segments, or a
///          size of `x` that is no multiple of the length of rows; a number beyond its limit; memory
///          that overlaps; in host memory also offsets that decrease or end elsewhere).
WYE_API Job segment_mean(Read<float> x, Read<std::uint32_t> offsets, Write<float> result);
WYE_API Job segment_mean(Read<half> x, Read<std::uint32_t> offsets, Write<half> result);
WYE_API Job segment_mean(Read<bfloat16> x, Read<std::uint32_t> offsets, Write<bfloat16> result);

namespace reference {
/// The same in float64 for rows of `columns` elements, on this thread.
WYE_API std::vector<double> segment_mean(std::span<const float> x, std::span<const std::uint32_t> offsets,
                                         std::uint64_t columns);
WYE_API std::vector<double> segment_mean(std::span<const half> x, std::span<const std::uint32_t> offsets,
                                         std::uint64_t columns);
WYE_API std::vector<double> segment_mean(std::span<const bfloat16> x, std::span<const std::uint32_t> offsets,
                                         std::uint64_t columns);
}  // namespace reference

}  // namespace wye::workloads
