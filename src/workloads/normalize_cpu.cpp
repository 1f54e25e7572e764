#include "per_target.hpp"

#include <cmath>

#include "cpu.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns the sum of squares in double precision. Squares of floats then neither overflow nor
/// underflow. The row is read from memory once, which takes longer than the conversion.
double sum_of_squares(const float* HWY_RESTRICT x, std::size_t n) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> f;
  double sum = 0;
  std::size_t i = add_up(d, 0, n, sum, [&](hn::Vec<decltype(d)>& part, std::size_t k) HWY_ATTR {
    const auto v = hn::PromoteTo(d, hn::LoadU(f, x + k));
    part = hn::MulAdd(v, v, part);
  });
  for (; i < n; ++i) sum += double{x[i]} * double{x[i]};
  return sum;
}

template <class D>
std::size_t scale_part(D d, float* HWY_RESTRICT x, std::size_t i, std::size_t n, float first, float second) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, first)), hn::Set(d, second)), d, x + i);
  return i;
}

void make_unit(float* x, std::size_t n, Squares squares) {
  float factor = 0x1p-80f, sum = squares.down;  // infinities and NaN, too
  if (squares.plain <= 0x1p126f) {
    const bool small = squares.plain < 0x1p-80f;
    factor = small ? 0x1p100f : 1.0f;
    sum = small ? squares.up : squares.plain;
  }
  const float length = sum == 0 ? 0.0f : 1.0f / std::sqrt(sum);
  const std::size_t done = scale_part(hn::ScalableTag<float>(), x, 0, n, factor, length);
  scale_part(hn::CappedTag<float, 1>(), x, done, n, factor, length);
}

Squares squares_of(const float* x, std::size_t n) {
  const double sum = sum_of_squares(x, n);
  return {static_cast<float>(sum), static_cast<float>(sum * 0x1p200), static_cast<float>(sum * 0x1p-160)};
}

void whole_rows(float* x, std::size_t rows, std::size_t columns) {
  for (; rows > 0; --rows, x += columns) make_unit(x, columns, squares_of(x, columns));
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(whole_rows);
HWY_EXPORT(squares_of);
HWY_EXPORT(make_unit);
HWY_EXPORT(sum_of_squares);

double sum_of_squares(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x.data(), x.size());
}

void normalize(Range range, std::span<float> matrix, RowSplit split) {
  const Range rows = pieces_of(range, split);
  HWY_DYNAMIC_DISPATCH(whole_rows)(matrix.data() + rows.first * split.columns, rows.size(), split.columns);
}

void normalize_sums(Range range, std::span<const float> matrix, std::span<float> sums, RowSplit split) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const Squares squares = HWY_DYNAMIC_DISPATCH(squares_of)(matrix.data() + p.first, p.size);
    sums[3 * number] = squares.plain;
    sums[3 * number + 1] = squares.up;
    sums[3 * number + 2] = squares.down;
  }
}

void normalize_apply(Range range, std::span<float> matrix, std::span<const float> sums, RowSplit split) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const auto pieces = sums.subspan(3 * p.row * split.pieces, 3 * std::size_t{split.pieces});
    double sums_of_row[3] = {};
    for (std::size_t k = 0; k < pieces.size(); ++k) sums_of_row[k % 3] += double{pieces[k]};
    HWY_DYNAMIC_DISPATCH(make_unit)
    (matrix.data() + p.first, p.size,
     {static_cast<float>(sums_of_row[0]), static_cast<float>(sums_of_row[1]),
      static_cast<float>(sums_of_row[2])});
  }
}

}  // namespace wye::workloads::cpu
#endif
