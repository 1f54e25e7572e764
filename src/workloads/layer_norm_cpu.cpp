#include "per_target.hpp"

#include <algorithm>
#include <cmath>

#include "blocks.hpp"
#include "cpu.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
std::size_t norm_sum_part(D d, const float* HWY_RESTRICT x, std::size_t i, std::size_t n, float& sum) {
  return add_up(d, i, n, sum,
                [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR { part = hn::Add(part, hn::LoadU(d, x + k)); });
}
float norm_sum_of(const float* x, std::size_t n) {
  float sum = 0;
  const std::size_t done = norm_sum_part(hn::ScalableTag<float>(), x, 0, n, sum);
  norm_sum_part(hn::CappedTag<float, 1>(), x, done, n, sum);
  return sum;
}

template <class D>
std::size_t norm_moments_part(D d, const float* HWY_RESTRICT x, std::size_t i, std::size_t n, float mean,
                              Moments& sums) {
  using V = hn::Vec<D>;
  const std::size_t lanes = hn::Lanes(d);
  const V origin = hn::Set(d, mean);
  // Four parts do not wait for each other.
  V f0 = hn::Zero(d), f1 = f0, f2 = f0, f3 = f0, s0 = f0, s1 = f0, s2 = f0, s3 = f0;
  const auto add = [&](std::size_t k, V& first, V& second) HWY_ATTR {
    const V deviation = hn::Sub(hn::LoadU(d, x + k), origin);
    first = hn::Add(first, deviation);
    second = hn::MulAdd(deviation, deviation, second);
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(i, f0, s0);
    add(i + lanes, f1, s1);
    add(i + 2 * lanes, f2, s2);
    add(i + 3 * lanes, f3, s3);
  }
  for (; i + lanes <= n; i += lanes) add(i, f0, s0);
  const auto total = [&](V a, V b, V c, V e) HWY_ATTR {
    return double{hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))))};
  };
  sums.first += total(f0, f1, f2, f3);
  sums.second += total(s0, s1, s2, s3);
  return i;
}
/// Adds the deviations from `mean` and their squares to `sums`.
void norm_add_moments(const float* x, std::size_t n, float mean, Moments& sums) {
  const std::size_t done = norm_moments_part(hn::ScalableTag<float>(), x, 0, n, mean, sums);
  norm_moments_part(hn::CappedTag<float, 1>(), x, done, n, mean, sums);
}

template <class D>
std::size_t norm_apply_part(D d, const float* HWY_RESTRICT x, const float* HWY_RESTRICT weight,
                            const float* HWY_RESTRICT bias, float* to, std::size_t i, std::size_t n,
                            NormFactors factors) {
  const auto mean = hn::Set(d, factors.mean), inverse = hn::Set(d, factors.inverse),
             correction = hn::Set(d, factors.correction * factors.inverse);
  const std::size_t lanes = hn::Lanes(d);
  for (; i + lanes <= n; i += lanes) {
    const auto deviation = hn::Sub(hn::LoadU(d, x + i), mean), of_row = hn::LoadU(d, weight + i);
    const auto y = hn::MulSub(deviation, inverse, correction);
    hn::StoreU(bias == nullptr ? hn::Mul(y, of_row) : hn::MulAdd(y, of_row, hn::LoadU(d, bias + i)), d,
               to + i);
  }
  return i;
}
/// `bias` may be null.
void norm_apply(const float* x, const float* weight, const float* bias, float* to, std::size_t n,
                NormFactors factors) {
  const std::size_t done = norm_apply_part(hn::ScalableTag<float>(), x, weight, bias, to, 0, n, factors);
  norm_apply_part(hn::CappedTag<float, 1>(), x, weight, bias, to, done, n, factors);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(norm_sum_of);
HWY_EXPORT(norm_add_moments);
HWY_EXPORT(norm_apply);

/// Adds x to `sums`, and rounds these to their type.
template <class T>
void add_rows(const T* x, T* sums, std::size_t n) {
  float wide_x[float_block], wide_sums[float_block], added[float_block];
  for (std::size_t i = 0; i < n; i += float_block) {
    const std::size_t count = std::min(float_block, n - i);
    const float* const a = as_floats(x + i, count, wide_x);
    const float* const b = as_floats(sums + i, count, wide_sums);
    for (std::size_t k = 0; k < count; ++k) added[k] = a[k] + b[k];
    write_floats({added, count}, sums + i);
  }
}

template <class T>
float norm_sum(std::span<const T> x) {
  float wide[float_block];
  return sum_of_blocks(x.size(), [&](std::size_t i, std::size_t n) {
    return HWY_DYNAMIC_DISPATCH(norm_sum_of)(as_floats(x.data() + i, n, wide), n);
  });
}

template <class T>
Moments norm_moments(std::span<const T> x, float mean) {
  float wide[float_block];
  Moments sums;
  for (std::size_t i = 0; i < x.size(); i += float_block) {
    const std::size_t n = std::min(float_block, x.size() - i);
    HWY_DYNAMIC_DISPATCH(norm_add_moments)(as_floats(x.data() + i, n, wide), n, mean, sums);
  }
  return sums;
}

template <class T>
void norm_write(std::span<const T> x, const T* weight, const T* bias, T* result, NormFactors factors) {
  float wide_x[float_block], wide_weight[float_block], wide_bias[float_block], wide[float_block];
  for (std::size_t i = 0; i < x.size(); i += float_block) {
    const std::size_t n = std::min(float_block, x.size() - i);
    float* const to = room_of_floats(result + i, wide);
    HWY_DYNAMIC_DISPATCH(norm_apply)
    (as_floats(x.data() + i, n, wide_x), as_floats(weight + i, n, wide_weight),
     bias == nullptr ? nullptr : as_floats(bias + i, n, wide_bias), to, n, factors);
    write_floats({to, n}, result + i);
  }
}

}  // namespace

template <class T>
void row_norm(Range range, std::span<const T> x, std::span<T> residual, std::span<const T> weight,
              std::span<const T> bias, std::span<float> partials, std::span<T> result, RowSplit split,
              NormStep norm) {
  const bool centered = norm.centered != 0;
  const bool begins = norm.phase == norm_of_rows || norm.phase == (centered ? norm_sums : norm_deviations);
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    std::span<const T> values = x.subspan(p.first, p.size);
    if (!residual.empty()) {
      // The first step adds x, the others read the sums.
      const std::span<T> sums = residual.subspan(p.first, p.size);
      if (begins) add_rows(values.data(), sums.data(), p.size);
      values = sums;
    }
    float* const own = partials.empty() ? nullptr : partials.data() + 3 * number;
    const float* const of_row = partials.data() + (partials.empty() ? 0 : 3 * p.row * split.pieces);

    float mean = 0;
    if (centered) {
      double sum = 0;
      if (norm.phase == norm_of_rows || norm.phase == norm_sums)
        sum = double{norm_sum(values)};
      else
        for (std::size_t k = 0; k < split.pieces; ++k) sum += double{of_row[3 * k]};
      if (norm.phase == norm_sums) {
        own[0] = static_cast<float>(sum);
        own[1] = own[2] = 0;
        continue;
      }
      mean = static_cast<float>(sum / split.columns);
    }

    Moments moments;
    if (norm.phase == norm_results) {
      for (std::size_t k = 0; k < split.pieces; ++k) {
        moments.first += double{of_row[3 * k + 1]};
        moments.second += double{of_row[3 * k + 2]};
      }
    } else {
      moments = norm_moments(values, mean);
    }
    if (norm.phase == norm_deviations) {
      if (!centered) own[0] = 0;
      own[1] = static_cast<float>(moments.first);
      own[2] = static_cast<float>(moments.second);
      continue;
    }

    const double correction = centered ? moments.first / split.columns : 0;
    const double difference = moments.second / split.columns - correction * correction;
    const double variance = difference < 0 ? 0 : difference;  // NaN stays
    const NormFactors factors{.mean = mean,
                              .correction = static_cast<float>(correction),
                              .inverse = static_cast<float>(1 / std::sqrt(variance + double{norm.epsilon}))};
    const std::uint64_t column = p.first - p.row * split.columns;
    norm_write(values, weight.data() + column, bias.empty() ? nullptr : bias.data() + column,
               result.data() + p.first, factors);
  }
}

#define WYE_ROW_NORM(T)                                                                                   \
  template void row_norm(Range, std::span<const T>, std::span<T>, std::span<const T>, std::span<const T>, \
                         std::span<float>, std::span<T>, RowSplit, NormStep);
WYE_ROW_NORM(float)
WYE_ROW_NORM(half)
WYE_ROW_NORM(bfloat16)
#undef WYE_ROW_NORM

}  // namespace wye::workloads::cpu
#endif
