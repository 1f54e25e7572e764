#include "per_target.hpp"

#include <algorithm>

#include "blocks.hpp"
#include "cpu.hpp"
#include "unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Adds up `together` vectors of columns at a time, which do not wait for each other.
template <std::size_t together, class D>
std::size_t segment_columns(D d, const float* HWY_RESTRICT x, std::size_t step, std::size_t rows,
                            float* HWY_RESTRICT sums, std::size_t i, std::size_t n) {
  const std::size_t lanes = hn::Lanes(d);
  for (; i + together * lanes <= n; i += together * lanes) {
    hn::Vec<D> parts[together];
    WYE_UNROLL
    for (std::size_t j = 0; j < together; ++j) parts[j] = hn::Zero(d);
    const float* from = x + i;
    for (std::size_t row = 0; row < rows; ++row, from += step) {
      WYE_UNROLL
      for (std::size_t j = 0; j < together; ++j) parts[j] = hn::Add(parts[j], hn::LoadU(d, from + j * lanes));
    }
    WYE_UNROLL
    for (std::size_t j = 0; j < together; ++j) {
      float* const to = sums + i + j * lanes;
      hn::StoreU(hn::Add(hn::LoadU(d, to), parts[j]), d, to);
    }
  }
  return i;
}
/// Adds to `sums` those of `n` columns of rows that are `step` elements apart.
void segment_add(const float* x, std::size_t step, std::size_t rows, std::size_t n, float* sums) {
  const hn::ScalableTag<float> d;
  std::size_t done = segment_columns<8>(d, x, step, rows, sums, 0, n);
  done = segment_columns<1>(d, x, step, rows, sums, done, n);
  segment_columns<1>(hn::CappedTag<float, 1>(), x, step, rows, sums, done, n);
}

template <class D>
std::size_t segment_divide_part(D d, const float* sums, const float* rest, float count, float* to,
                                std::size_t i, std::size_t n) {
  const auto divisor = hn::Set(d, count);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Div(hn::Add(hn::LoadU(d, sums + i), hn::LoadU(d, rest + i)), divisor), d, to + i);
  return i;
}
void segment_divide(const float* sums, const float* rest, float count, float* to, std::size_t n) {
  const std::size_t done = segment_divide_part(hn::ScalableTag<float>(), sums, rest, count, to, 0, n);
  segment_divide_part(hn::CappedTag<float, 1>(), sums, rest, count, to, done, n);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(segment_add);
HWY_EXPORT(segment_divide);

/// Adds up to `segment_block` rows to `sums`.
void add_segment_block(const float* x, std::size_t step, std::size_t rows, std::size_t n, float* sums) {
  HWY_DYNAMIC_DISPATCH(segment_add)(x, step, rows, n, sums);
}
template <class T>
void add_segment_block(const T* x, std::size_t step, std::size_t rows, std::size_t n, float* sums) {
  constexpr std::size_t columns = 128;
  float wide[segment_block * columns];
  for (std::size_t i = 0; i < n; i += columns) {
    const std::size_t size = std::min(columns, n - i);
    widen(x + i, rows, size, step, wide);
    add_segment_block(wide, size, rows, size, sums + i);
  }
}

/// Adds rows to `sums`, a block at a time.
template <class T>
void add_segment_rows(const T* x, std::size_t step, std::size_t rows, std::size_t n, float* sums) {
  for (std::size_t row = 0; row < rows; row += segment_block)
    add_segment_block(x + row * step, step, std::min<std::size_t>(segment_block, rows - row), n, sums);
}

/// Calls `f(row, column, n)` for each piece of the range: n columns of a row of sums or means.
template <class F>
void each_segment_piece(Range range, SegmentShape shape, F f) {
  const Range items = below(range, shape.all_pieces() << shape.lanes_log2);
  for (std::uint64_t number = items.first >> shape.lanes_log2; number < items.last >> shape.lanes_log2;
       ++number) {
    const std::uint64_t row = number / shape.pieces, column = (number - row * shape.pieces) * segment_piece;
    f(row, column, std::min<std::uint64_t>(segment_piece, shape.columns - column));
  }
}

}  // namespace

template <class T>
void segment_sums(Range range, std::span<const T> x, std::span<const std::uint32_t> offsets,
                  std::span<float> sums, SegmentShape shape) {
  const std::uint64_t step = shape.columns;
  each_segment_piece(range, shape, [&](std::uint64_t stretch, std::uint64_t column, std::uint64_t n) {
    const std::uint64_t begin = stretch_begin(offsets, stretch, shape);
    float* const to = sums.data() + stretch * step + column;
    std::fill_n(to, n, 0.0f);
    if (begin < shape.rows) add_segment_rows(x.data() + begin * step + column, step, segment_stretch, n, to);
  });
}

template <class T>
void segment_mean(Range range, std::span<const T> x, std::span<const std::uint32_t> offsets,
                  std::span<const float> sums, std::span<T> result, SegmentShape shape) {
  const std::uint64_t step = shape.columns;
  float total[segment_piece], rest[segment_piece], wide[segment_piece];
  each_segment_piece(range, shape, [&](std::uint64_t segment, std::uint64_t column, std::uint64_t n) {
    const SegmentRows r = segment_rows(offsets, segment, shape);
    std::fill_n(total, n, 0.0f);
    std::fill_n(rest, n, 0.0f);
    const std::uint64_t stretches = (r.rest - r.begin) / segment_stretch;
    for (std::uint64_t i = 0; i < stretches; i += segment_group)
      add_segment_block(sums.data() + (r.first_sum + i) * step + column, step,
                        std::min<std::uint64_t>(segment_group, stretches - i), n, total);
    if (r.rest < r.end) add_segment_rows(x.data() + r.rest * step + column, step, r.end - r.rest, n, rest);
    T* const to = result.data() + segment * step + column;
    float* const means = room_of_floats(to, wide);
    HWY_DYNAMIC_DISPATCH(segment_divide)
    (total, rest, static_cast<float>(std::max(r.end - r.begin, 1u)), means, n);
    write_floats({means, n}, to);
  });
}

#define WYE_SEGMENTS(T)                                                                                   \
  template void segment_sums(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<float>, \
                             SegmentShape);                                                               \
  template void segment_mean(Range, std::span<const T>, std::span<const std::uint32_t>,                   \
                             std::span<const float>, std::span<T>, SegmentShape);
WYE_SEGMENTS(float)
WYE_SEGMENTS(half)
WYE_SEGMENTS(bfloat16)
#undef WYE_SEGMENTS

}  // namespace wye::workloads::cpu
#endif
