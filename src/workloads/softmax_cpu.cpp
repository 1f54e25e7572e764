#include "per_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "cpu.hpp"
#include "exponential.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
std::size_t largest_part(D d, const float* x, std::size_t i, std::size_t n, float scale, float& largest) {
  const auto factor = hn::Set(d, scale);
  return find_largest(d, i, n, largest,
                      [&](std::size_t k) HWY_ATTR { return hn::Mul(factor, hn::LoadU(d, x + k)); });
}

/// Returns the largest of x times `scale`, at least the lowest float, which also replaces
/// -infinity.
float largest(const float* x, std::size_t n, float scale) {
  float most = std::numeric_limits<float>::lowest();
  const std::size_t done = largest_part(hn::ScalableTag<float>(), x, 0, n, scale, most);
  largest_part(hn::CappedTag<float, 1>(), x, done, n, scale, most);
  return most;
}

template <bool keep, class D>
std::size_t exponentials_part(D d, const float* x, float* out, std::size_t i, std::size_t n, float scale,
                              float most, double& total, std::size_t ahead) {
  const std::size_t lanes = hn::Lanes(d);
  const auto factor = hn::Set(d, scale), origin = hn::Set(d, most);
  auto s0 = hn::Zero(d), s1 = s0;
  const auto at = [&](std::size_t k) HWY_ATTR {
    hwy::Prefetch(x + k + ahead);
    const auto e = exponential(d, hn::Sub(hn::Mul(factor, hn::LoadU(d, x + k)), origin));
    if constexpr (keep) hn::StoreU(e, d, out + k);
    return e;
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto e0 = at(i), e1 = at(i + lanes), e2 = at(i + 2 * lanes), e3 = at(i + 3 * lanes);
    s0 = hn::Add(s0, hn::Add(e0, e1));
    s1 = hn::Add(s1, hn::Add(e2, e3));
  }
  for (; i + lanes <= n; i += lanes) s0 = hn::Add(s0, at(i));
  total += double{hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)))};
  return i;
}

/// Returns the sum of exp(x scale - most), and stores the exponentials in `out`, which may be `x`.
/// Adds 1024 at a time in single precision, which makes the error independent of the row's length.
/// Prefetches `ahead`, because this loop does not wait for memory.
template <bool keep>
float exponentials(const float* x, float* out, std::size_t n, float scale, float most,
                   std::size_t ahead = 0) {
  double total = 0;
  for (std::size_t i = 0; i < n;) {
    const std::size_t last = std::min<std::size_t>(n, i + 1024);
    i = exponentials_part<keep>(hn::ScalableTag<float>(), x, out, i, last, scale, most, total, ahead);
    i = exponentials_part<keep>(hn::CappedTag<float, 1>(), x, out, i, last, scale, most, total, ahead);
  }
  return static_cast<float>(total);
}

template <class D>
std::size_t multiply_part(D d, float* x, std::size_t i, std::size_t n, float factor) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  return i;
}

/// Divides exponentials by their sum; gives NaN if there are none.
void share(float* x, std::size_t n, float sum) {
  const float factor = sum == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f / sum;
  const std::size_t done = multiply_part(hn::ScalableTag<float>(), x, 0, n, factor);
  multiply_part(hn::CappedTag<float, 1>(), x, done, n, factor);
}

void whole_rows(float* x, std::size_t rows, std::size_t columns, float scale) {
  for (; rows > 0; --rows, x += columns) {
    const float most = largest(x, columns, scale);
    share(x, columns, exponentials<true>(x, x, columns, scale, most, rows > 1 ? columns : 0));
  }
}

ExponentSum sum_of_piece(const float* x, std::size_t n, float scale) {
  const float most = largest(x, n, scale);
  return {most, exponentials<false>(x, nullptr, n, scale, most)};
}

ExponentSum exponentiate(float* x, std::size_t n, float scale, float most) {
  most = std::max(most, largest(x, n, scale));
  return {most, exponentials<true>(x, x, n, scale, most)};
}

void apply(float* x, std::size_t n, float scale, ExponentSum row) {
  (void)exponentials<true>(x, x, n, scale, row.most);
  share(x, n, row.sum);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(whole_rows);
HWY_EXPORT(sum_of_piece);
HWY_EXPORT(exponentiate);
HWY_EXPORT(apply);

void softmax(Range range, std::span<float> matrix, RowSplit split, float scale) {
  const Range rows = pieces_of(range, split);
  HWY_DYNAMIC_DISPATCH(whole_rows)
  (matrix.data() + rows.first * split.columns, rows.size(), split.columns, scale);
}

void softmax_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split,
                  float scale) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const ExponentSum sum = HWY_DYNAMIC_DISPATCH(sum_of_piece)(matrix.data() + p.first, p.size, scale);
    sums[2 * number] = sum.most;
    sums[2 * number + 1] = sum.sum;
  }
}

void softmax_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split,
                   float scale) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const auto pieces = sums.subspan(2 * p.row * split.pieces, 2 * std::size_t{split.pieces});
    float most = std::numeric_limits<float>::lowest();
    for (std::size_t k = 0; k < pieces.size(); k += 2) most = std::max(most, pieces[k]);
    double sum = 0;
    for (std::size_t k = 0; k < pieces.size(); k += 2)
      sum += double{pieces[k + 1]} * double{std::exp(pieces[k] - most)};
    HWY_DYNAMIC_DISPATCH(apply)
    (matrix.data() + p.first, p.size, scale, {.most = most, .sum = static_cast<float>(sum)});
  }
}

ExponentSum exponentiate(std::span<float> x, float scale, float most) {
  return HWY_DYNAMIC_DISPATCH(exponentiate)(x.data(), x.size(), scale, most);
}

}  // namespace wye::workloads::cpu
#endif
