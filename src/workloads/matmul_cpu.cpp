#include "per_target.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <type_traits>

#include "cpu.hpp"

// GCC and clang keep an array of vectors in registers only if loops over it are unrolled.
#if defined(__clang__)
#define WYE_UNROLL _Pragma("unroll")
#else
#define WYE_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// A panel is `panel_rows` x 2 vectors of c in registers: 24 of 32 registers with AVX-512, 12 of 16 without.
constexpr std::size_t panel_rows = HWY_TARGET <= HWY_AVX3 ? 12 : 6;
constexpr std::size_t panel_columns = 2 * HWY_LANES(float);
/// The stretch of the inner dimension whose packed part of b fits into the second-level cache.
constexpr std::size_t stretch = 512;
constexpr std::size_t most_columns = (block_side + panel_columns - 1) / panel_columns * panel_columns;

/// Sets `out` to rows of a, `a_step` apart, times a packed panel of b.
void multiply_panel(const float* HWY_RESTRICT a, std::size_t a_step, const float* HWY_RESTRICT b,
                    std::size_t inner, float* HWY_RESTRICT out) {
  const D d;
  constexpr std::size_t lanes = panel_columns / 2;
  V left[panel_rows], right[panel_rows];
  WYE_UNROLL
  for (std::size_t r = 0; r < panel_rows; ++r) left[r] = right[r] = hn::Zero(d);
  for (std::size_t p = 0; p < inner; ++p, b += panel_columns) {
    const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + lanes);
    WYE_UNROLL
    for (std::size_t r = 0; r < panel_rows; ++r) {
      const V x = hn::Set(d, a[r * a_step + p]);
      left[r] = hn::MulAdd(x, b0, left[r]);
      right[r] = hn::MulAdd(x, b1, right[r]);
    }
  }
  WYE_UNROLL
  for (std::size_t r = 0; r < panel_rows; ++r) {
    hn::Store(left[r], d, out + r * panel_columns);
    hn::Store(right[r], d, out + r * panel_columns + lanes);
  }
}

/// Packs rows [first, first + inner) of b in contiguous panels of `panel_columns`, padded with zeros.
void pack(const Block& block, std::size_t first, std::size_t inner, float* HWY_RESTRICT to) {
  for (std::size_t column = 0; column < block.columns; column += panel_columns, to += inner * panel_columns) {
    const std::size_t width = std::min(panel_columns, block.columns - column);
    if (width < panel_columns) std::fill(to, to + inner * panel_columns, 0.0f);
    if (block.transposed_b) {
      // Sixteen at a time: the written lines stay in the first-level cache until they are full.
      for (std::size_t p = 0; p < inner; p += 16)
        for (std::size_t j = 0; j < width; ++j) {
          const float* from = block.b + (column + j) * block.b_step + first;
          for (std::size_t q = p; q < std::min(p + 16, inner); ++q) to[q * panel_columns + j] = from[q];
        }
    } else if (width < panel_columns) {
      for (std::size_t p = 0; p < inner; ++p)
        std::copy_n(block.b + (first + p) * block.b_step + column, width, to + p * panel_columns);
    } else {
      const D d;
      for (std::size_t p = 0; p < inner; ++p) {
        const float* from = block.b + (first + p) * block.b_step + column;
        hn::Store(hn::LoadU(d, from), d, to + p * panel_columns);
        hn::Store(hn::LoadU(d, from + hn::Lanes(d)), d, to + p * panel_columns + hn::Lanes(d));
      }
    }
  }
}

template <class T>
std::size_t store_part(T d, const float* HWY_RESTRICT from, std::size_t i, std::size_t n, bool add,
                       float* HWY_RESTRICT to) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, from + i);
    hn::StoreU(add ? hn::Add(hn::LoadU(d, to + i), v) : v, d, to + i);
  }
  return i;
}

void store_panel(const float* HWY_RESTRICT from, std::size_t rows, std::size_t columns, bool add,
                 float* HWY_RESTRICT to, std::size_t step) {
  for (std::size_t r = 0; r < rows; ++r, from += panel_columns, to += step) {
    const std::size_t done = store_part(D(), from, 0, columns, add, to);
    store_part(hn::CappedTag<float, 1>(), from, done, columns, add, to);
  }
}

/// Copies rows of a transposed a: elements [first, first + inner) of each. It copies the rows of a vector at a time, four
/// elements of each, so that the written lines stay in the first-level cache.
void pack_rows(const Block& block, std::size_t first, std::size_t inner, float* HWY_RESTRICT to) {
  const D d;
  constexpr std::size_t lanes = panel_columns / 2, deep = 4;
  const float* const from = block.a + first * block.a_step;
  HWY_ALIGN float fours[deep * lanes];
  for (std::size_t row = 0; row < block.rows; row += lanes) {
    const std::size_t rows = std::min(lanes, block.rows - row);
    float* const begin = to + row * inner;
    std::size_t p = 0;
    for (; rows == lanes && p + deep <= inner; p += deep) {
      const float* const here = from + p * block.a_step + row;
      hn::StoreInterleaved4(hn::LoadU(d, here), hn::LoadU(d, here + block.a_step),
                            hn::LoadU(d, here + 2 * block.a_step), hn::LoadU(d, here + 3 * block.a_step), d,
                            fours);
      for (std::size_t r = 0; r < lanes; ++r) std::copy_n(fours + r * deep, deep, begin + r * inner + p);
    }
    for (; p < inner; ++p)
      for (std::size_t r = 0; r < rows; ++r) begin[r * inner + p] = from[p * block.a_step + row + r];
  }
}

void multiply(const Block& block) {
  const auto memory =
      hwy::AllocateAligned<float>(stretch * (most_columns + panel_rows) + panel_rows * panel_columns +
                                  (block.transposed_a ? stretch * block.rows : 0));
  float* const packed = memory.get();
  float* const panel = packed + stretch * most_columns;
  float* const last_rows = panel + panel_rows * panel_columns;
  float* const packed_rows = last_rows + stretch * panel_rows;
  const std::size_t whole_rows = block.rows / panel_rows * panel_rows;

  for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min(stretch, block.inner - first);
    const bool add = block.add || first > 0;
    pack(block, first, inner, packed);
    const float* a = block.a + first;
    std::size_t a_step = block.a_step;
    if (block.transposed_a) {
      pack_rows(block, first, inner, packed_rows);
      a = packed_rows;
      a_step = inner;
    }
    std::fill(last_rows, last_rows + panel_rows * inner, 0.0f);
    for (std::size_t r = whole_rows; r < block.rows; ++r)
      std::copy_n(a + r * a_step, inner, last_rows + (r - whole_rows) * inner);

    for (std::size_t column = 0; column < block.columns; column += panel_columns) {
      const std::size_t width = std::min(panel_columns, block.columns - column);
      const auto make = [&](const float* from, std::size_t step, std::size_t row, std::size_t rows) {
        multiply_panel(from, step, packed + column * inner, inner, panel);
        store_panel(panel, rows, width, add, block.c + row * block.c_step + column, block.c_step);
      };
      for (std::size_t row = 0; row < whole_rows; row += panel_rows)
        make(a + row * a_step, a_step, row, panel_rows);
      if (whole_rows < block.rows) make(last_rows, inner, whole_rows, block.rows - whole_rows);
    }
  }
}

/// Convert numbers of other types to floats, exactly.
using Ints = hn::RebindToSigned<D>;
V widened(D d, const half* from) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::PromoteTo(
      words, hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from)));
  const auto size = hn::And(bits, hn::Set(words, 0x7fffu));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, size));
  // Numbers above 2^-14 get another exponent, infinity and NaN the largest; smaller numbers are multiples of
  // 2^-24.
  const auto finite = hn::Add(hn::ShiftLeft<13>(size), hn::Set(words, 0x3800'0000u));
  const auto all = hn::Or(hn::ShiftLeft<13>(size), hn::Set(words, 0x7f80'0000u));
  const V small = hn::Mul(hn::ConvertTo(d, hn::BitCast(Ints(), size)), hn::Set(d, 0x1p-24f));
  const auto is_finite = hn::Lt(hn::BitCast(Ints(), size), hn::Set(Ints(), 0x7c00));
  const auto is_small = hn::Lt(hn::BitCast(Ints(), size), hn::Set(Ints(), 0x400));
  const auto value =
      hn::IfThenElse(hn::RebindMask(d, is_finite), hn::BitCast(d, finite), hn::BitCast(d, all));
  return hn::Or(hn::IfThenElse(hn::RebindMask(d, is_small), small, value), hn::BitCast(d, sign));
}
V widened(D d, const bfloat16* from) {
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::PromoteTo(
      words, hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(d, hn::ShiftLeft<16>(bits));
}
V widened(D d, const std::int8_t* from) {
  return hn::ConvertTo(d, hn::PromoteTo(Ints(), hn::LoadU(hn::Rebind<std::int8_t, D>(), from)));
}

template <class T>
void widen(const T* HWY_RESTRICT from, std::size_t rows, std::size_t columns, std::size_t step,
           float* HWY_RESTRICT to) {
  const D d;
  for (; rows != 0; --rows, from += step, to += columns) {
    std::size_t i = 0;
    for (; i + hn::Lanes(d) <= columns; i += hn::Lanes(d)) hn::StoreU(widened(d, from + i), d, to + i);
    for (; i < columns; ++i) to[i] = static_cast<float>(from[i]);
  }
}
void widen_half(const half* from, std::size_t rows, std::size_t columns, std::size_t step, float* to) {
  widen(from, rows, columns, step, to);
}
void widen_bfloat16(const bfloat16* from, std::size_t rows, std::size_t columns, std::size_t step,
                    float* to) {
  widen(from, rows, columns, step, to);
}
void widen_int8(const std::int8_t* from, std::size_t rows, std::size_t columns, std::size_t step, float* to) {
  widen(from, rows, columns, step, to);
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

HWY_EXPORT(multiply);
HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bfloat16);
HWY_EXPORT(widen_int8);

void multiply_any(const Block& block) { multiply(block); }

/// Converts a stretch of the block's rows and columns to floats and multiplies them. Sums of 512 products of
/// 8 bits are below 2^24, so floats are exact.
template <class T, class C>
void multiply_any(const BlockOf<T, C>& block) {
  constexpr std::size_t stretch = 512, side = block_side;
  constexpr bool whole = std::is_same_v<C, std::int32_t>;
  const auto memory = hwy::AllocateAligned<float>(2 * stretch * side + (whole ? side * side : 0));
  float *const a = memory.get(), *const b = a + stretch * side, *const sums = b + stretch * side;
  for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min(stretch, block.inner - first);
    const bool add = block.add || first > 0;
    if (block.transposed_a)
      widen(block.a + first * block.a_step, inner, block.rows, block.a_step, a);
    else
      widen(block.a + first, block.rows, inner, block.a_step, a);
    if (block.transposed_b)
      widen(block.b + first, block.columns, inner, block.b_step, b);
    else
      widen(block.b + first * block.b_step, inner, block.columns, block.b_step, b);
    Block part{.rows = block.rows,
               .columns = block.columns,
               .inner = inner,
               .a = a,
               .a_step = block.transposed_a ? block.rows : std::max<std::size_t>(inner, 1),
               .transposed_a = block.transposed_a,
               .b = b,
               .b_step = block.transposed_b ? std::max<std::size_t>(inner, 1) : block.columns,
               .transposed_b = block.transposed_b};
    if constexpr (whole) {
      part.c = sums;
      part.c_step = block.columns;
      multiply_any(part);
      for (std::size_t i = 0; i < block.rows; ++i)
        for (std::size_t j = 0; j < block.columns; ++j) {
          C& c = block.c[i * block.c_step + j];
          const auto sum = static_cast<std::uint32_t>(static_cast<C>(sums[i * block.columns + j]));
          c = static_cast<C>((add ? static_cast<std::uint32_t>(c) : 0) + sum);  // wraps around
        }
    } else {
      part.c = block.c;
      part.c_step = block.c_step;
      part.add = add;
      multiply_any(part);
    }
  }
}

/// Calls `f` for the blocks of c in `range`, with the block without its c, its column and its first element in c.
template <class C, class T, class F>
void for_blocks(Range range, std::span<const T> a, std::span<const T> b, const Product& shape, F f) {
  const std::uint64_t across = (shape.columns + block_side - 1) / block_side;
  const std::uint64_t down = (shape.rows + block_side - 1) / block_side;
  const Range items = below(range, blocks_of(shape) * items_per_block);
  for (std::uint64_t number = items.first / items_per_block; number < items.last / items_per_block;
       ++number) {
    const std::uint64_t n = number / (across * down), at = number % (across * down);
    const std::uint64_t row = at / across * block_side, column = at % across * block_side;
    const std::uint64_t of_row = row * (shape.transposed_a ? 1 : shape.inner),
                        of_column = column * (shape.transposed_b ? shape.inner : 1);
    f(BlockOf<T, C>{.rows = std::min<std::size_t>(block_side, shape.rows - row),
                    .columns = std::min<std::size_t>(block_side, shape.columns - column),
                    .inner = shape.last - shape.first,
                    .a = a.data() + n * shape.a_step + a_start(shape) + of_row,
                    .a_step = a_row(shape),
                    .transposed_a = shape.transposed_a != 0,
                    .b = b.data() + n * shape.b_step + b_start(shape) + of_column,
                    .b_step = b_row(shape),
                    .transposed_b = shape.transposed_b != 0,
                    .add = shape.first > 0},
      column, n * shape.c_step + row * shape.columns + column);
  }
}

const float* from(std::span<const float> numbers, std::uint64_t first) {
  return numbers.empty() ? nullptr : numbers.data() + first;
}

}  // namespace

void multiply(const Block& block) { HWY_DYNAMIC_DISPATCH(multiply)(block); }

void widen(const half* from, std::size_t rows, std::size_t columns, std::size_t step, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_half)(from, rows, columns, step, to);
}
void widen(const bfloat16* from, std::size_t rows, std::size_t columns, std::size_t step, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_bfloat16)(from, rows, columns, step, to);
}
void widen(const std::int8_t* from, std::size_t rows, std::size_t columns, std::size_t step, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_int8)(from, rows, columns, step, to);
}

template <class T>
void matmul(Range range, std::span<const T> a, std::span<const T> b, std::span<const float> bias,
            std::span<const float> residual, std::span<float> c, Product shape) {
  for_blocks<float>(range, a, b, shape, [&](BlockOf<T, float> block, std::uint64_t column, std::uint64_t at) {
    block.c = c.data() + at;
    block.c_step = shape.columns;
    multiply_any(block);
    if (shape.last == shape.inner)
      finish({.rows = block.rows,
              .columns = block.columns,
              .c = block.c,
              .c_step = block.c_step,
              .bias = from(bias, column),
              .residual = from(residual, at),
              .scale = shape.scale,
              .activation = shape.activation});
  });
}
template void matmul(Range, std::span<const float>, std::span<const float>, std::span<const float>,
                     std::span<const float>, std::span<float>, Product);
template void matmul(Range, std::span<const half>, std::span<const half>, std::span<const float>,
                     std::span<const float>, std::span<float>, Product);
template void matmul(Range, std::span<const bfloat16>, std::span<const bfloat16>, std::span<const float>,
                     std::span<const float>, std::span<float>, Product);

void matmul(Range range, std::span<const std::int8_t> a, std::span<const std::int8_t> b,
            std::span<std::int32_t> c, Product shape) {
  for_blocks<std::int32_t>(range, a, b, shape,
                           [&](BlockOf<std::int8_t, std::int32_t> block, std::uint64_t, std::uint64_t at) {
                             block.c = c.data() + at;
                             block.c_step = shape.columns;
                             multiply_any(block);
                           });
}

template <class T>
void matmul_rounded(Range range, std::span<const T> a, std::span<const T> b, std::span<const T> bias,
                    std::span<const T> residual, std::span<const float> sums, std::span<T> c, Product shape) {
  constexpr std::size_t side = block_side;
  const auto memory = hwy::AllocateAligned<float>(side * side + 2 * side);
  float *const block_sums = memory.get(), *const wide_bias = block_sums + side * side,
               *const wide_residual = wide_bias + side;
  for_blocks<float>(range, a, b, shape, [&](BlockOf<T, float> block, std::uint64_t column, std::uint64_t at) {
    block.c = block_sums;
    block.c_step = block.columns;
    block.add = false;
    multiply_any(block);
    if (!bias.empty()) widen(bias.data() + column, 1, block.columns, block.columns, wide_bias);
    for (std::size_t i = 0; i < block.rows; ++i, at += shape.columns) {
      const std::span<float> row(block_sums + i * block.columns, block.columns);
      if (shape.first > 0)
        for (std::size_t j = 0; j < row.size(); ++j) row[j] += sums[at + j];
      if (!residual.empty()) widen(residual.data() + at, 1, block.columns, block.columns, wide_residual);
      finish({.rows = 1,
              .columns = block.columns,
              .c = row.data(),
              .c_step = block.columns,
              .bias = bias.empty() ? nullptr : wide_bias,
              .residual = residual.empty() ? nullptr : wide_residual,
              .scale = shape.scale,
              .activation = shape.activation});
      narrow(row, c.data() + at);
    }
  });
}
template void matmul_rounded(Range, std::span<const half>, std::span<const half>, std::span<const half>,
                             std::span<const half>, std::span<const float>, std::span<half>, Product);
template void matmul_rounded(Range, std::span<const bfloat16>, std::span<const bfloat16>,
                             std::span<const bfloat16>, std::span<const bfloat16>, std::span<const float>,
                             std::span<bfloat16>, Product);

void narrow(std::span<const float> from, half* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = half(from[i]);
}
void narrow(std::span<const float> from, bfloat16* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = bfloat16(from[i]);
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
