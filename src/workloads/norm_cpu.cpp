#include "per_target.hpp"

#include <wye/workloads/norm.hpp>

#include <algorithm>
#include <bit>
#include <cmath>

#include "blocks.hpp"
#include "cpu.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns the sum of absolute values.
template <class D>
std::size_t sizes_part(D d, const float* x, std::size_t i, std::size_t n, float& sum) {
  return add_up(d, i, n, sum, [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR {
    part = hn::Add(part, hn::Abs(hn::LoadU(d, x + k)));
  });
}
double sum_of_sizes(const float* x, std::size_t n) {
  float sum = 0;
  const std::size_t done = sizes_part(hn::ScalableTag<float>(), x, 0, n, sum);
  sizes_part(hn::CappedTag<float, 1>(), x, done, n, sum);
  return double{sum};
}

/// Returns the largest absolute value. Bits of numbers that are not negative have the order of the
/// numbers, and those of NaN are the largest.
template <class D>
std::size_t most_part(D d, const float* x, std::size_t i, std::size_t n, std::int32_t& most) {
  const hn::Rebind<float, D> floats;
  return find_largest(d, i, n, most, [&](std::size_t k) HWY_ATTR {
    return hn::BitCast(d, hn::Abs(hn::LoadU(floats, x + k)));
  });
}
double most_of(const float* x, std::size_t n) {
  std::int32_t most = 0;
  const std::size_t done = most_part(hn::ScalableTag<std::int32_t>(), x, 0, n, most);
  most_part(hn::CappedTag<std::int32_t, 1>(), x, done, n, most);
  return double{std::bit_cast<float>(most)};
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(sum_of_sizes);
HWY_EXPORT(most_of);

double of_block(Norm norm, const float* x, std::size_t n) {
  switch (norm) {
    case Norm::one: return HWY_DYNAMIC_DISPATCH(sum_of_sizes)(x, n);
    case Norm::two: return sum_of_squares({x, n});
    default: return HWY_DYNAMIC_DISPATCH(most_of)(x, n);
  }
}

/// Combines numbers that are not negative: adds them, or returns the larger one. NaN is the
/// largest.
double combined(Norm norm, double a, double b) {
  if (norm != Norm::infinity) return a + b;
  return a >= b || std::isnan(a) ? a : b;
}

}  // namespace

template <class T>
void norm(Range range, std::span<const T> x, std::span<float> results, RowSplit split, std::uint32_t which) {
  const auto norm = static_cast<Norm>(which);
  float wide[float_block];
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    double all = 0;
    for (std::size_t i = 0; i < p.size; i += float_block) {
      const std::size_t n = std::min<std::size_t>(float_block, p.size - i);
      all = combined(norm, all, of_block(norm, as_floats(x.data() + p.first + i, n, wide), n));
    }
    results[number] = static_cast<float>(norm == Norm::two ? std::sqrt(all) : all);
  }
}
template void norm(Range, std::span<const float>, std::span<float>, RowSplit, std::uint32_t);
template void norm(Range, std::span<const half>, std::span<float>, RowSplit, std::uint32_t);
template void norm(Range, std::span<const bfloat16>, std::span<float>, RowSplit, std::uint32_t);

}  // namespace wye::workloads::cpu
#endif
