#pragma once
/// The rows of a matrix, shifted to the mean 0 and divided by their standard deviation.
#include <wye/base/half.hpp>
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <span>
#include <vector>

namespace wye::inline v0::workloads {

struct LayerNormOptions {
  float epsilon = 1e-12f;  ///< at least 2^-126
};

/// Sets each row of `result` to y * weight + bias, with y = (x - mean(x)) / sqrt(variance(x) + epsilon). The variance is the mean
/// of the squares of x - mean(x).
/// Shape:   rows of as many elements as `weight` and `bias`, row after row; any number of rows, rows of any length below 2^31.
///          `result` is as long as `x` and does not overlap the other memory.
/// Bound:   2e-5 (1 + |y|) |weight| + 2^-22 |bias| if the mean of |x| in the row is at most 10,000 sqrt(variance + epsilon), and
///          the sums of |x| and x^2 are below 2^127. Elements of 16 bits are computed as float and rounded once. Numbers below
///          2^-126 may count as zero. A row with a NaN or an infinity becomes NaN.
/// Bits:    the same device gives the same bits for a row, alone or among others.
/// Cost:    reads `x` and writes `result` once if rows have at most 65,536 elements and fit into a cache.
/// Errors:  invalid_argument (a size of `x` that is no multiple of that of `weight`; sizes of `bias` and `weight` or of `result`
///          and `x` that differ; an epsilon that is not finite or too small; memory that overlaps).
/// Source:  Ba, Kiros, Hinton, Layer normalization, arXiv:1607.06450. Chan, Golub, LeVeque, Algorithms for computing the sample
///          variance, The American Statistician 37 (1983), section 2, corrects the mean.
WYE_API Job layer_norm(Read<float> x, Read<float> weight, Read<float> bias, Write<float> result,
                       LayerNormOptions options = {});
WYE_API Job layer_norm(Read<half> x, Read<half> weight, Read<half> bias, Write<half> result,
                       LayerNormOptions options = {});
WYE_API Job layer_norm(Read<bfloat16> x, Read<bfloat16> weight, Read<bfloat16> bias, Write<bfloat16> result,
                       LayerNormOptions options = {});

/// Adds `x` to `residual`, and sets `result` to the norm of these sums, which are rounded to their
/// type first.
/// Shape:   as above; `residual` is as long as `x`.
WYE_API Job layer_norm(Read<float> x, ReadWrite<float> residual, Read<float> weight, Read<float> bias,
                       Write<float> result, LayerNormOptions options = {});
WYE_API Job layer_norm(Read<half> x, ReadWrite<half> residual, Read<half> weight, Read<half> bias,
                       Write<half> result, LayerNormOptions options = {});
WYE_API Job layer_norm(Read<bfloat16> x, ReadWrite<bfloat16> residual, Read<bfloat16> weight,
                       Read<bfloat16> bias, Write<bfloat16> result, LayerNormOptions options = {});

namespace reference {
/// The norm of `x` in float64, on this thread.
WYE_API std::vector<double> layer_norm(std::span<const float> x, std::span<const float> weight,
                                       std::span<const float> bias, LayerNormOptions options = {});
WYE_API std::vector<double> layer_norm(std::span<const half> x, std::span<const half> weight,
                                       std::span<const half> bias, LayerNormOptions options = {});
WYE_API std::vector<double> layer_norm(std::span<const bfloat16> x, std::span<const bfloat16> weight,
                                       std::span<const bfloat16> bias, LayerNormOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
