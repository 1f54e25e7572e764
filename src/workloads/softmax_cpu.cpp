// Compiled once per instruction set by Highway, and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "softmax_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// exp(v) for v <= 0; 0 below -87, where floats end; NaN of NaN.
template <class D, class V>
V exponential(D d, V v) {
  const V lowest = hn::Set(d, -87.0f);
  const V e = hn::IfThenZeroElse(hn::Lt(v, lowest), hn::Exp(d, hn::Max(v, lowest)));
  return hn::IfThenElse(hn::IsNaN(v), v, e);
}

template <class D>
std::size_t largest_part(D d, const float* x, std::size_t i, std::size_t n, float scale, float& largest) {
  auto most = hn::Set(d, largest);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    most = hn::Max(hn::Mul(hn::Set(d, scale), hn::LoadU(d, x + i)), most);
  largest = hn::GetLane(hn::MaxOfLanes(d, most));
  return i;
}

/// The largest of x times `scale`, and not less than the lowest float: -infinity counts as that.
float largest(const float* x, std::size_t n, float scale) {
  float most = std::numeric_limits<float>::lowest();
  const std::size_t done = largest_part(hn::ScalableTag<float>(), x, 0, n, scale, most);
  largest_part(hn::CappedTag<float, 1>(), x, done, n, scale, most);
  return most;
}

template <bool keep, class D>
std::size_t exponentials_part(D d, const float* x, float* out, std::size_t i, std::size_t n, float scale,
                              float most, double& total) {
  auto sum = hn::Zero(d);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto e = exponential(d, hn::Sub(hn::Mul(hn::Set(d, scale), hn::LoadU(d, x + i)), hn::Set(d, most)));
    sum = hn::Add(sum, e);
    if constexpr (keep) hn::StoreU(e, d, out + i);
  }
  total += double{hn::GetLane(hn::SumOfLanes(d, sum))};
  return i;
}

/// The sum of exp(x scale - most); keeps them in `out`, which may be `x`. Adds 1024 at a time in single precision, so
/// that the error does not grow with the row.
template <bool keep>
float exponentials(const float* x, float* out, std::size_t n, float scale, float most) {
  double total = 0;
  for (std::size_t i = 0; i < n;) {
    const std::size_t last = std::min<std::size_t>(n, i + 1024);
    i = exponentials_part<keep>(hn::ScalableTag<float>(), x, out, i, last, scale, most, total);
    i = exponentials_part<keep>(hn::CappedTag<float, 1>(), x, out, i, last, scale, most, total);
  }
  return static_cast<float>(total);
}

float keep_exponentials(const float* x, float* out, std::size_t n, float scale, float most) {
  return exponentials<true>(x, out, n, scale, most);
}
float sum_exponentials(const float* x, std::size_t n, float scale, float most) {
  return exponentials<false>(x, nullptr, n, scale, most);
}

template <class D>
std::size_t multiply_part(D d, float* x, std::size_t i, std::size_t n, float factor) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  return i;
}

void multiply_all(float* x, std::size_t n, float factor) {
  const std::size_t done = multiply_part(hn::ScalableTag<float>(), x, 0, n, factor);
  multiply_part(hn::CappedTag<float, 1>(), x, done, n, factor);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace {

HWY_EXPORT(largest);
HWY_EXPORT(keep_exponentials);
HWY_EXPORT(sum_exponentials);
HWY_EXPORT(multiply_all);

/// What to multiply exponentials by to make them weights: NaN where there were none.
float share_of(float sum) { return sum == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f / sum; }

}  // namespace

void softmax(Range range, std::span<float> matrix, RowSplit split, float scale) {
  each_piece(range, split, [&](Piece piece) {
    float* row = matrix.data() + piece.first;
    const float most = HWY_DYNAMIC_DISPATCH(largest)(row, piece.size, scale);
    const float sum = HWY_DYNAMIC_DISPATCH(keep_exponentials)(row, row, piece.size, scale, most);
    HWY_DYNAMIC_DISPATCH(multiply_all)(row, piece.size, share_of(sum));
  });
}

void softmax_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split,
                  float scale) {
  each_piece(range, split, [&](Piece piece) {
    const float* row = matrix.data() + piece.first;
    const float most = HWY_DYNAMIC_DISPATCH(largest)(row, piece.size, scale);
    sums[2 * piece.number] = most;
    sums[2 * piece.number + 1] = HWY_DYNAMIC_DISPATCH(sum_exponentials)(row, piece.size, scale, most);
  });
}

void softmax_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split,
                   float scale) {
  each_piece(range, split, [&](Piece piece) {
    const auto of_row = sums.subspan(2 * piece.row * split.pieces, 2 * std::size_t{split.pieces});
    float most = std::numeric_limits<float>::lowest(), sum = 0;
    for (std::size_t k = 0; k < of_row.size(); k += 2) most = std::max(most, of_row[k]);
    for (std::size_t k = 0; k < of_row.size(); k += 2) sum += of_row[k + 1] * std::exp(of_row[k] - most);
    float* row = matrix.data() + piece.first;
    HWY_DYNAMIC_DISPATCH(keep_exponentials)(row, row, piece.size, scale, most);
    HWY_DYNAMIC_DISPATCH(multiply_all)(row, piece.size, share_of(sum));
  });
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
