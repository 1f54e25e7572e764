#pragma once
/// Prefix sums of vectors, and of the rows of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Whether each prefix sum includes the element at its place.
enum class Scan : std::uint8_t { inclusive, exclusive };

/// Sets each of `sums` to the sum of the elements of `x` before it in its row, and of the element at its place if `scan`
/// is `inclusive`. The first exclusive sum of a row is 0.
/// Shape:   as many sums as elements. `x` has rows of `columns` elements, row after row; unset: one row. Lengths of rows and
///          their number are below 2^31. `sums` does not overlap `x`.
/// Bound:   floats: (128 + 2 log2 n) 2^-24 sum |x| over the row up to that place, n elements, if that sum is below 2^127.
///          NaN and infinities propagate to all later sums of the row. Numbers below 2^-126 may count as zero. Sums of
///          integers are exact modulo 2^bits.
/// Bits:    the same device gives the same bits.
/// Cost:    reads `x` twice and writes `sums` once; reads once if rows have at most 65,536 elements. Kernels on
///          Vulkan: as `reduce`.
/// Errors:  invalid_argument (a number of sums other than that of the elements, or that is no multiple of `columns`; memory
///          that overlaps).
WYE_API Job scan(Scan scan, Read<float> x, Write<float> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);
WYE_API Job scan(Scan scan, Read<std::int32_t> x, Write<std::int32_t> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);
WYE_API Job scan(Scan scan, Read<std::uint32_t> x, Write<std::uint32_t> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);
WYE_API Job scan(Scan scan, Read<std::uint64_t> x, Write<std::uint64_t> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);

/// The same for elements of 16 bits. Sums are float.
WYE_API Job scan(Scan scan, Read<half> x, Write<float> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);
WYE_API Job scan(Scan scan, Read<bfloat16> x, Write<float> sums,
                 std::optional<std::uint64_t> columns = std::nullopt);

namespace reference {
/// Returns the prefix sums of `rows` rows, on this thread: in float64, or exact modulo 2^bits.
WYE_API std::vector<double> scan(Scan scan, std::span<const float> x, std::uint64_t rows);
WYE_API std::vector<double> scan(Scan scan, std::span<const half> x, std::uint64_t rows);
WYE_API std::vector<double> scan(Scan scan, std::span<const bfloat16> x, std::uint64_t rows);
WYE_API std::vector<std::int32_t> scan(Scan scan, std::span<const std::int32_t> x, std::uint64_t rows);
WYE_API std::vector<std::uint32_t> scan(Scan scan, std::span<const std::uint32_t> x, std::uint64_t rows);
WYE_API std::vector<std::uint64_t> scan(Scan scan, std::span<const std::uint64_t> x, std::uint64_t rows);
}  // namespace reference

}  // namespace wye::workloads
