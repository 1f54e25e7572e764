// Compiled once per instruction set by Highway, and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "normalize_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include <cmath>

#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// The sum of squares in double precision, where squares of floats neither overflow nor vanish. A row is read once from
/// memory, which takes longer than the conversion.
double sum_of_squares(const float* HWY_RESTRICT x, std::size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  const auto add = [&](auto& sum, std::size_t at) HWY_ATTR {
    const auto v = hn::PromoteTo(d, hn::LoadU(f, x + at));
    sum = hn::MulAdd(v, v, sum);
  };
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(s0, i);
    add(s1, i + lanes);
    add(s2, i + 2 * lanes);
    add(s3, i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) add(s0, i);
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

template <class D>
std::size_t scale_part(D d, float* HWY_RESTRICT x, std::size_t i, std::size_t n, float first, float second) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, first)), hn::Set(d, second)), d, x + i);
  return i;
}

void scale(float* HWY_RESTRICT x, std::size_t n, float first, float second) {
  const std::size_t done = scale_part(hn::ScalableTag<float>(), x, 0, n, first, second);
  scale_part(hn::CappedTag<float, 1>(), x, done, n, first, second);
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

HWY_EXPORT(sum_of_squares);
HWY_EXPORT(scale);

/// Sums of squares in three scales, as the shader has them: as they are, of 2^64 and of 2^-80 times the numbers.
struct Sums {
  float plain = 0;
  float up = 0;
  float down = 0;
};

Sums sums_of(const float* x, std::size_t n) {
  const double sum = HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, n);
  return {static_cast<float>(sum), static_cast<float>(sum * 0x1p128), static_cast<float>(sum * 0x1p-160)};
}

void make_unit(float* x, std::size_t n, Sums sums) {
  float factor = 0x1p-80f, sum = sums.down;  // infinities and NaN land here, too
  if (sums.plain <= 0x1p126f) {
    const bool small = sums.plain < 0x1p-80f;
    factor = small ? 0x1p64f : 1.0f;
    sum = small ? sums.up : sums.plain;
  }
  HWY_DYNAMIC_DISPATCH(scale)(x, n, factor, sum == 0 ? 0.0f : 1.0f / std::sqrt(sum));
}

}  // namespace

void normalize(Range range, std::span<float> matrix, RowSplit split) {
  each_piece(range, split, [&](Piece piece) {
    float* row = matrix.data() + piece.first;
    make_unit(row, piece.size, sums_of(row, piece.size));
  });
}

void normalize_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split) {
  each_piece(range, split, [&](Piece piece) {
    const Sums of = sums_of(matrix.data() + piece.first, piece.size);
    float* to = sums.data() + 3 * piece.number;
    to[0] = of.plain, to[1] = of.up, to[2] = of.down;
  });
}

void normalize_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split) {
  each_piece(range, split, [&](Piece piece) {
    Sums all;
    const float* from = sums.data() + 3 * piece.row * split.pieces;
    for (std::uint32_t k = 0; k < split.pieces; ++k, from += 3)
      all = {all.plain + from[0], all.up + from[1], all.down + from[2]};
    make_unit(matrix.data() + piece.first, piece.size, all);
  });
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
