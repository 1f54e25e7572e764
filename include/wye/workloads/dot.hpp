#pragma once
/// Dot products of vectors, and of the rows of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// Sets each of `results` to the sum of the products of one row of `x` and the same row of `y`.
/// Shape:   as `reduce`; `y` is as long as `x`. They may be the same memory.
/// Bound:   floats: (128 + 2 log2 n) 2^-24 sum |x y| for rows of n elements, if that sum is below 2^127. NaN and
///          infinities propagate as in sums of products. Numbers and products below 2^-126 may count as zero. Integers are
///          exact modulo 2^bits.
/// Bits:    the same device gives the same bits.
/// Cost:    reads `x` and `y` once. Kernels on Vulkan: as `reduce`.
/// Errors:  invalid_argument (sizes of `x` and `y` that differ, or are no multiple of the number of results).
WYE_API Job dot(Read<float> x, Read<float> y, Write<float> results);
WYE_API Job dot(Read<half> x, Read<half> y, Write<float> results);
WYE_API Job dot(Read<bfloat16> x, Read<bfloat16> y, Write<float> results);
WYE_API Job dot(Read<std::int32_t> x, Read<std::int32_t> y, Write<std::int32_t> results);
WYE_API Job dot(Read<std::uint32_t> x, Read<std::uint32_t> y, Write<std::uint32_t> results);
WYE_API Job dot(Read<std::uint64_t> x, Read<std::uint64_t> y, Write<std::uint64_t> results);

namespace reference {
/// The same for `rows` rows, on this thread: in float64, or exact modulo 2^bits.
WYE_API std::vector<double> dot(std::span<const float> x, std::span<const float> y, std::uint64_t rows);
WYE_API std::vector<double> dot(std::span<const half> x, std::span<const half> y, std::uint64_t rows);
WYE_API std::vector<double> dot(std::span<const bfloat16> x, std::span<const bfloat16> y, std::uint64_t rows);
WYE_API std::vector<std::int32_t> dot(std::span<const std::int32_t> x, std::span<const std::int32_t> y,
                                      std::uint64_t rows);
WYE_API std::vector<std::uint32_t> dot(std::span<const std::uint32_t> x, std::span<const std::uint32_t> y,
                                       std::uint64_t rows);
WYE_API std::vector<std::uint64_t> dot(std::span<const std::uint64_t> x, std::span<const std::uint64_t> y,
                                       std::uint64_t rows);
}  // namespace reference

}  // namespace wye::workloads
