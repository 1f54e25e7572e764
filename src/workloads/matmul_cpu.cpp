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
    if (block.transposed) {
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

void multiply(const Block& block) {
  const auto memory =
      hwy::AllocateAligned<float>(stretch * (most_columns + panel_rows) + panel_rows * panel_columns);
  float* const packed = memory.get();
  float* const panel = packed + stretch * most_columns;
  float* const last_rows = panel + panel_rows * panel_columns;
  const std::size_t whole_rows = block.rows / panel_rows * panel_rows;

  for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min(stretch, block.inner - first);
    const bool add = block.add || first > 0;
    pack(block, first, inner, packed);
    std::fill(last_rows, last_rows + panel_rows * inner, 0.0f);
    for (std::size_t r = whole_rows; r < block.rows; ++r)
      std::copy_n(block.a + r * block.a_step + first, inner, last_rows + (r - whole_rows) * inner);

    for (std::size_t column = 0; column < block.columns; column += panel_columns) {
      const std::size_t width = std::min(panel_columns, block.columns - column);
      const auto make = [&](const float* a, std::size_t a_step, std::size_t row, std::size_t rows) {
        multiply_panel(a, a_step, packed + column * inner, inner, panel);
        store_panel(panel, rows, width, add, block.c + row * block.c_step + column, block.c_step);
      };
      for (std::size_t row = 0; row < whole_rows; row += panel_rows)
        make(block.a + row * block.a_step + first, block.a_step, row, panel_rows);
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
/// 8 bits are below 2^24, so floats are exact. Numbers of c of 16 bits are rounded after the last stretch.
template <class T, class C>
void multiply_any(const BlockOf<T, C>& block) {
  constexpr std::size_t stretch = 512, side = block_side;
  constexpr bool whole = std::is_same_v<C, std::int32_t>, rounded = std::is_same_v<C, T>;
  const auto memory = hwy::AllocateAligned<float>(2 * stretch * side + (whole || rounded ? side * side : 0));
  float *const a = memory.get(), *const b = a + stretch * side, *const sums = b + stretch * side;
  for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min(stretch, block.inner - first);
    const bool add = block.add || first > 0;
    widen(block.a + first, block.rows, inner, block.a_step, a);
    if (block.transposed)
      widen(block.b + first, block.columns, inner, block.b_step, b);
    else
      widen(block.b + first * block.b_step, inner, block.columns, block.b_step, b);
    Block part{.rows = block.rows,
               .columns = block.columns,
               .inner = inner,
               .a = a,
               .a_step = std::max<std::size_t>(inner, 1),
               .b = b,
               .b_step = block.transposed ? std::max<std::size_t>(inner, 1) : block.columns,
               .transposed = block.transposed};
    if constexpr (whole || rounded) {
      part.c = sums;
      part.c_step = block.columns;
      part.add = rounded && first > 0;
      multiply_any(part);
    } else {
      part.c = block.c;
      part.c_step = block.c_step;
      part.add = add;
      multiply_any(part);
    }
    if constexpr (whole)
      for (std::size_t i = 0; i < block.rows; ++i)
        for (std::size_t j = 0; j < block.columns; ++j) {
          C& c = block.c[i * block.c_step + j];
          const auto sum = static_cast<std::uint32_t>(static_cast<C>(sums[i * block.columns + j]));
          c = static_cast<C>((add ? static_cast<std::uint32_t>(c) : 0) + sum);  // wraps around
        }
  }
  if constexpr (rounded)
    for (std::size_t i = 0; i < block.rows; ++i)
      for (std::size_t j = 0; j < block.columns; ++j)
        block.c[i * block.c_step + j] = C(sums[i * block.columns + j]);
}

/// Computes the blocks of c in `range`.
template <class T, class C>
void multiply_blocks(Range range, const T* a, const T* b, C* c, const Product& shape) {
  const std::uint64_t across = (shape.columns + block_side - 1) / block_side;
  const std::uint64_t down = (shape.rows + block_side - 1) / block_side;
  const Range items = below(range, blocks_of(shape) * items_per_block);
  for (std::uint64_t number = items.first / items_per_block; number < items.last / items_per_block;
       ++number) {
    const std::uint64_t n = number / (across * down), at = number % (across * down);
    const std::uint64_t row = at / across * block_side, column = at % across * block_side;
    const std::uint64_t b_start = shape.transposed ? column * shape.inner + shape.first
                                                   : std::uint64_t{shape.first} * shape.columns + column;
    multiply_any(BlockOf<T, C>{.rows = std::min<std::size_t>(block_side, shape.rows - row),
                               .columns = std::min<std::size_t>(block_side, shape.columns - column),
                               .inner = shape.last - shape.first,
                               .a = a + n * shape.a_step + row * shape.inner + shape.first,
                               .a_step = shape.inner,
                               .b = b + n * shape.b_step + b_start,
                               .b_step = shape.transposed ? shape.inner : shape.columns,
                               .transposed = shape.transposed != 0,
                               .c = c + n * shape.c_step + row * shape.columns + column,
                               .c_step = shape.columns,
                               .add = shape.first > 0});
  }
}

template <class T>
void narrow_all(Range range, std::span<const float> from, std::span<T> to) {
  const Range items = below(range, to.size());
  for (std::uint64_t i = items.first; i < items.last; ++i) to[i] = T(from[i]);
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

void matmul(Range range, std::span<const float> a, std::span<const float> b, std::span<float> c,
            Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}
void matmul(Range range, std::span<const half> a, std::span<const half> b, std::span<float> c,
            Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}
void matmul(Range range, std::span<const bfloat16> a, std::span<const bfloat16> b, std::span<float> c,
            Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}
void matmul(Range range, std::span<const std::int8_t> a, std::span<const std::int8_t> b,
            std::span<std::int32_t> c, Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}
void matmul(Range range, std::span<const half> a, std::span<const half> b, std::span<half> c, Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}
void matmul(Range range, std::span<const bfloat16> a, std::span<const bfloat16> b, std::span<bfloat16> c,
            Product shape) {
  multiply_blocks(range, a.data(), b.data(), c.data(), shape);
}

void narrow(Range range, std::span<const float> from, std::span<half> to) { narrow_all(range, from, to); }
void narrow(Range range, std::span<const float> from, std::span<bfloat16> to) { narrow_all(range, from, to); }

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
