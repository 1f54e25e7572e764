#pragma once
/// Sums, smallest and largest elements of vectors, and of the rows of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

enum class Reduction : std::uint8_t { sum, min, max };

/// Sets each of `results` to the sum, the smallest or the largest element of one row of `x`.
/// Shape:   one result for each row; one result reduces a vector. `x` has rows of equal length, row after row. Lengths of
///          rows and their number are below 2^31. Sums of empty rows are 0. Without results, `x` is empty.
/// Bound:   sums of floats: (128 + 2 log2 n) 2^-24 sum |x| for rows of n elements, if that sum is below 2^127. NaN and
///          infinities propagate. Numbers below 2^-126 may count as zero. Sums of integers are exact modulo 2^bits.
///          `min` and `max` are exact: bit for bit the first of equal elements. NaN is larger than infinity, all NaN are
///          equal, and so are both zeros: `max` is NaN if an element is, `min` if all are.
/// Bits:    the same device gives the same bits.
/// Cost:    reads `x` once. On the CPU, the sum of 2^26 floats takes as long as reading them (bench/workloads_bench.cpp).
///          On Vulkan there are two kernels, which add in the same order. GPUs with subgroup operations measure both
///          (`fastest_of`), and with `measure_variants` off use the kernel with subgroups. CPUs always use the other kernel.
/// Errors:  invalid_argument (a size of `x` that is no multiple of the number of results; `min` or `max` of empty rows).
WYE_API Job reduce(Reduction reduction, Read<float> x, Write<float> results);
WYE_API Job reduce(Reduction reduction, Read<std::int32_t> x, Write<std::int32_t> results);
WYE_API Job reduce(Reduction reduction, Read<std::uint32_t> x, Write<std::uint32_t> results);
WYE_API Job reduce(Reduction reduction, Read<std::uint64_t> x, Write<std::uint64_t> results);

/// The same for elements of 16 bits. Sums are float. `min` and `max` have the type of `x`.
/// Errors:  invalid_argument (as above; results of the other type).
WYE_API Job reduce(Reduction reduction, Read<half> x, Write<float> results);
WYE_API Job reduce(Reduction reduction, Read<half> x, Write<half> results);
WYE_API Job reduce(Reduction reduction, Read<bfloat16> x, Write<float> results);
WYE_API Job reduce(Reduction reduction, Read<bfloat16> x, Write<bfloat16> results);

/// The same for `min` and `max`, with the place of each result: its column in the row. Of equal
/// elements, the first column.
/// Shape:   as many places as results.
/// Errors:  invalid_argument (as above; `sum`; a number of places other than that of the results).
WYE_API Job reduce(Reduction reduction, Read<float> x, Write<float> results, Write<std::uint32_t> places);
WYE_API Job reduce(Reduction reduction, Read<half> x, Write<half> results, Write<std::uint32_t> places);
WYE_API Job reduce(Reduction reduction, Read<bfloat16> x, Write<bfloat16> results,
                   Write<std::uint32_t> places);
WYE_API Job reduce(Reduction reduction, Read<std::int32_t> x, Write<std::int32_t> results,
                   Write<std::uint32_t> places);
WYE_API Job reduce(Reduction reduction, Read<std::uint32_t> x, Write<std::uint32_t> results,
                   Write<std::uint32_t> places);
WYE_API Job reduce(Reduction reduction, Read<std::uint64_t> x, Write<std::uint64_t> results,
                   Write<std::uint32_t> places);

namespace reference {
/// Returns the sums of `rows` rows, on this thread: in float64, or exact modulo 2^bits.
WYE_API std::vector<double> sums(std::span<const float> x, std::uint64_t rows);
WYE_API std::vector<double> sums(std::span<const half> x, std::uint64_t rows);
WYE_API std::vector<double> sums(std::span<const bfloat16> x, std::uint64_t rows);
WYE_API std::vector<std::int32_t> sums(std::span<const std::int32_t> x, std::uint64_t rows);
WYE_API std::vector<std::uint32_t> sums(std::span<const std::uint32_t> x, std::uint64_t rows);
WYE_API std::vector<std::uint64_t> sums(std::span<const std::uint64_t> x, std::uint64_t rows);
/// Returns the places of the results of `min` or `max` in each of `rows` rows, on this thread.
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const float> x, std::uint64_t rows);
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const half> x, std::uint64_t rows);
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const bfloat16> x,
                                          std::uint64_t rows);
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::int32_t> x,
                                          std::uint64_t rows);
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::uint32_t> x,
                                          std::uint64_t rows);
WYE_API std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::uint64_t> x,
                                          std::uint64_t rows);
}  // namespace reference

}  // namespace wye::workloads
