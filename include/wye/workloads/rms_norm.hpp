#pragma once
/// The rows of a matrix divided by their root mean square.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <span>
#include <vector>

namespace wye::inline v0::workloads {

struct RmsNormOptions {
  float epsilon = 1e-5f;  ///< at least 2^-126
};

/// Sets each row of `result` to x / sqrt(mean(x^2) + epsilon) * weight.
/// Shape:   rows of as many elements as `weight`, row after row; any number of rows, rows of any length below 2^31. `result` is as
///          long as `x` and does not overlap the other memory.
/// Bound:   2e-5 of each element if the sum of the squares of its row is below 2^127. Elements of 16 bits are computed as float
///          and rounded once. Numbers below 2^-126 may count as zero. In a row with an infinity, infinities become NaN and the
///          others zero. A row with a NaN becomes NaN.
/// Bits:    the same device gives the same bits for a row, alone or among others.
/// Cost:    reads `x` and writes `result` once if rows have at most 65,536 elements and fit into a cache.
/// Errors:  invalid_argument (a size of `x` that is no multiple of that of `weight`; a size of `result` other than that of `x`; an
///          epsilon that is not finite or too small; memory that overlaps).
/// Source:  Zhang and Sennrich, Root mean square layer normalization, arXiv:1910.07467.
WYE_API Job rms_norm(Read<float> x, Read<float> weight, Write<float> result, RmsNormOptions options = {});
WYE_API Job rms_norm(Read<half> x, Read<half> weight, Write<half> result, RmsNormOptions options = {});
WYE_API Job rms_norm(Read<bfloat16> x, Read<bfloat16> weight, Write<bfloat16> result,
                     RmsNormOptions options = {});

/// Adds `x` to `residual`, and sets `result` to the norm of these sums, which are rounded to their
/// type first.
/// Shape:   as above; `residual` is as long as `x`.
WYE_API Job rms_norm(Read<float> x, ReadWrite<float> residual, Read<float> weight, Write<float> result,
                     RmsNormOptions options = {});
WYE_API Job rms_norm(Read<half> x, ReadWrite<half> residual, Read<half> weight, Write<half> result,
                     RmsNormOptions options = {});
WYE_API Job rms_norm(Read<bfloat16> x, ReadWrite<bfloat16> residual, Read<bfloat16> weight,
                     Write<bfloat16> result, RmsNormOptions options = {});

namespace reference {
/// The norm of `x` in float64, on this thread.
WYE_API std::vector<double> rms_norm(std::span<const float> x, std::span<const float> weight,
                                     RmsNormOptions options = {});
WYE_API std::vector<double> rms_norm(std::span<const half> x, std::span<const half> weight,
                                     RmsNormOptions options = {});
WYE_API std::vector<double> rms_norm(std::span<const bfloat16> x, std::span<const bfloat16> weight,
                                     RmsNormOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
