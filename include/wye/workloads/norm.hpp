#pragma once
/// Norms of vectors, and of the rows of matrices.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

/// The sum of absolute values, the Euclidean length, the largest absolute value.
enum class Norm : std::uint32_t { one, two, infinity };

/// Sets each of `results` to the norm of one row of `x`.
/// Shape:   as `reduce`. Norms of empty rows are 0.
/// Bound:   (128 + 2 log2 n) 2^-24 of each norm, for rows of n elements. Squares neither overflow nor underflow. `infinity`
///          is exact. NaN and infinities propagate. Numbers below 2^-126 may count as zero.
/// Bits:    the same device gives the same bits.
/// Cost:    reads `x` once. Kernels on Vulkan: as `reduce`.
/// Errors:  invalid_argument (a size of `x` that is no multiple of the number of results).
/// Source:  Blue, A portable Fortran program to find the Euclidean norm of a vector, ACM TOMS 4 (1978), with three sums in
///          place of three ranges.
WYE_API Job norm(Norm norm, Read<float> x, Write<float> results);
WYE_API Job norm(Norm norm, Read<half> x, Write<float> results);
WYE_API Job norm(Norm norm, Read<bfloat16> x, Write<float> results);

namespace reference {
/// The same for `rows` rows in float64, on this thread.
WYE_API std::vector<double> norm(Norm norm, std::span<const float> x, std::uint64_t rows);
WYE_API std::vector<double> norm(Norm norm, std::span<const half> x, std::uint64_t rows);
WYE_API std::vector<double> norm(Norm norm, std::span<const bfloat16> x, std::uint64_t rows);
}  // namespace reference

}  // namespace wye::workloads
