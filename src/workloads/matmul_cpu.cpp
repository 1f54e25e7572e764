#include "per_target.hpp"

#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <type_traits>

#include "cpu.hpp"
#include "transposed_loads.hpp"
#include "unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

/// A panel of c is `panel_rows` x `panel_vectors` vectors in registers: 24 of 32 with AVX-512, 12
/// of 16 without. With AVX-512, six rows of four vectors need fewer loads than twelve of two.
constexpr std::size_t lanes = HWY_LANES(float), panel_rows = 6,
                      panel_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;
constexpr std::size_t panel_columns = panel_vectors * lanes;
/// The stretch of the inner dimension whose packed part of b fits into the second-level cache.
constexpr std::size_t stretch = 512;
constexpr std::size_t most_columns = (block_side + panel_columns - 1) / panel_columns * panel_columns;

/// Sets the first `vectors` vectors of each row of `out` to `rows` rows of a, `a_step` apart, times
/// a packed panel of b. The bits of a row depend neither on `rows` nor on `vectors`.
template <std::size_t rows, std::size_t vectors>
void multiply_panel(const float* HWY_RESTRICT a, std::size_t a_step, const float* HWY_RESTRICT b,
                    std::size_t inner, float* HWY_RESTRICT out) {
  const D d;
  constexpr std::size_t ahead = 4 * panel_columns, line = 64 / sizeof(float);
  V sums[rows][vectors];
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    WYE_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (std::size_t p = 0; p < inner; ++p, b += panel_columns) {
    V columns[vectors];
    WYE_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) columns[v] = hn::Load(d, b + v * lanes);
    WYE_UNROLL
    for (std::size_t i = 0; i < vectors * lanes; i += line) hwy::Prefetch(b + ahead + i);
    WYE_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      const V x = hn::Set(d, a[r * a_step + p]);
      WYE_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(x, columns[v], sums[r][v]);
    }
  }
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    WYE_UNROLL
    for (std::size_t v = 0; v < vectors; ++v) hn::Store(sums[r][v], d, out + r * panel_columns + v * lanes);
  }
}

/// The same for the first `width` columns: those beyond them are not all computed.
template <std::size_t rows>
void multiply_panel(const float* a, std::size_t a_step, const float* b, std::size_t inner, std::size_t width,
                    float* out) {
  if (width <= panel_columns / 2)
    multiply_panel<rows, panel_vectors / 2>(a, a_step, b, inner, out);
  else
    multiply_panel<rows, panel_vectors>(a, a_step, b, inner, out);
}

/// Sets to[j][i] = from[i][j] for `rows` i and `columns` j. Rows of both are steps apart. Writes a
/// line of the cache at a time.
void pack_transposed(const float* HWY_RESTRICT from, std::size_t from_step, std::size_t rows,
                     std::size_t columns, float* HWY_RESTRICT to, std::size_t to_step) {
  const D d;
  constexpr std::size_t wide = std::min<std::size_t>(16, panel_columns), deep = 4;
  V fours[deep];
  std::size_t i = 0;
  for (; i + wide <= rows; i += wide) {
    std::size_t j = 0;
    for (; j + deep <= columns; j += deep)
      for (std::size_t v = i; v < i + wide; v += lanes) {
        fetch_ahead(d, from + v * from_step, from_step, j);
        load_columns(d, from + v * from_step + j, from_step, fours);
        for (std::size_t k = 0; k < deep; ++k) hn::StoreU(fours[k], d, to + (j + k) * to_step + v);
      }
    for (; j < columns; ++j)
      for (std::size_t v = i; v < i + wide; ++v) to[j * to_step + v] = from[v * from_step + j];
  }
  for (; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) to[j * to_step + i] = from[i * from_step + j];
}

/// Packs rows [first, first + inner) of b in contiguous panels of `panel_columns`, padded with
/// zeros.
void pack(const Block& block, std::size_t first, std::size_t inner, float* HWY_RESTRICT to) {
  const D d;
  const std::size_t rest = block.columns % panel_columns, whole = block.columns - rest;
  float* const last = to + whole * inner;
  if (rest != 0) std::fill(last, last + inner * panel_columns, 0.0f);
  if (block.transposed_b) {
    for (std::size_t column = 0; column < block.columns; column += panel_columns)
      pack_transposed(block.b + column * block.b_step + first, block.b_step,
                      std::min(panel_columns, block.columns - column), inner, to + column * inner,
                      panel_columns);
    return;
  }
  for (std::size_t p = 0; p < inner; ++p) {
    const float* const from = block.b + (first + p) * block.b_step;
    for (std::size_t column = 0; column < whole; column += panel_columns)
      for (std::size_t i = 0; i < panel_columns; i += lanes)
        hn::Store(hn::LoadU(d, from + column + i), d, to + column * inner + p * panel_columns + i);
    std::copy_n(from + whole, rest, last + p * panel_columns);
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

/// Multiplies the last rows, fewer than a panel has. Those beyond `rows` are zeros.
void multiply_last_rows(const float* a, const float* b, std::size_t inner, std::size_t rows,
                        std::size_t width, float* out) {
  if (rows == 1)
    multiply_panel<1>(a, inner, b, inner, width, out);
  else if (rows == 2)
    multiply_panel<2>(a, inner, b, inner, width, out);
  else if (rows <= 4)
    multiply_panel<4>(a, inner, b, inner, width, out);
  else
    multiply_panel<panel_rows>(a, inner, b, inner, width, out);
}

/// Multiplies at most `rows` rows by columns of a b that is given transposed, without packing them.
/// Returns the first column that is left. A sum adds its products in the order in which
/// `multiply_panel` does.
template <std::size_t rows>
std::size_t multiply_rows(const Block& block) {
  const D d;
  constexpr std::size_t deep = 4;
  const float* a[rows];
  for (std::size_t r = 0; r < rows; ++r) a[r] = block.a + std::min(r, block.rows - 1) * block.a_step;
  std::size_t column = 0;
  for (; column + lanes <= block.columns; column += lanes)
    for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
      const std::size_t last = std::min(first + stretch, block.inner);
      const float* const b = block.b + column * block.b_step;
      V sums[rows];
      WYE_UNROLL
      for (std::size_t r = 0; r < rows; ++r) sums[r] = hn::Zero(d);
      const auto add_products = [&](std::size_t p, V of_columns) HWY_ATTR {
        WYE_UNROLL
        for (std::size_t r = 0; r < rows; ++r) sums[r] = hn::MulAdd(hn::Set(d, a[r][p]), of_columns, sums[r]);
      };
      std::size_t p = first;
      for (; p + deep <= last; p += deep) {
        V columns[deep];
        fetch_ahead(d, b, block.b_step, p);
        load_columns(d, b + p, block.b_step, columns);
        WYE_UNROLL
        for (std::size_t k = 0; k < deep; ++k) add_products(p + k, columns[k]);
      }
      for (; p < last; ++p) {
        HWY_ALIGN float one[lanes];
        for (std::size_t i = 0; i < lanes; ++i) one[i] = b[i * block.b_step + p];
        add_products(p, hn::Load(d, one));
      }
      const bool add = block.add || first > 0;
      for (std::size_t r = 0; r < std::min(rows, block.rows); ++r) {
        float* const to = block.c + r * block.c_step + column;
        hn::StoreU(add ? hn::Add(hn::LoadU(d, to), sums[r]) : sums[r], d, to);
      }
    }
  return column;
}
std::size_t multiply_few_rows(const Block& block) {
  if (block.rows == 1) return multiply_rows<1>(block);
  if (block.rows == 2) return multiply_rows<2>(block);
  return block.rows <= 4 ? multiply_rows<4>(block) : multiply_rows<8>(block);
}

void multiply_columns(const Block& block) {
  // Few rows multiply each panel of b while the first-level cache has it.
  const std::size_t group = block.rows <= 2 * panel_rows ? panel_columns : most_columns;
  const auto memory =
      hwy::AllocateAligned<float>(stretch * (group + panel_rows) + panel_rows * panel_columns +
                                  (block.transposed_a ? stretch * block.rows : 0));
  float* const packed = memory.get();
  float* const panel = packed + stretch * group;
  float* const last_rows = panel + panel_rows * panel_columns;
  float* const packed_rows = last_rows + stretch * panel_rows;
  const std::size_t whole_rows = block.rows / panel_rows * panel_rows;

  for (std::size_t first = 0; first < block.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min(stretch, block.inner - first);
    const bool add = block.add || first > 0;
    const float* a = block.a + first;
    std::size_t a_step = block.a_step;
    if (block.transposed_a) {
      pack_transposed(block.a + first * a_step, a_step, inner, block.rows, packed_rows, inner);
      a = packed_rows;
      a_step = inner;
    }
    std::fill(last_rows, last_rows + panel_rows * inner, 0.0f);
    for (std::size_t r = whole_rows; r < block.rows; ++r)
      std::copy_n(a + r * a_step, inner, last_rows + (r - whole_rows) * inner);

    for (std::size_t begin = 0; begin < block.columns; begin += group) {
      Block part = block;
      part.columns = std::min(group, block.columns - begin);
      part.b += begin * (block.transposed_b ? block.b_step : 1);
      pack(part, first, inner, packed);
      for (std::size_t column = 0; column < part.columns; column += panel_columns) {
        const std::size_t width = std::min(panel_columns, part.columns - column);
        const float* const b = packed + column * inner;
        const auto store = [&](std::size_t row, std::size_t rows) {
          store_panel(panel, rows, width, add, block.c + row * block.c_step + begin + column, block.c_step);
        };
        for (std::size_t row = 0; row < whole_rows; row += panel_rows) {
          multiply_panel<panel_rows>(a + row * a_step, a_step, b, inner, width, panel);
          store(row, panel_rows);
        }
        if (whole_rows < block.rows) {
          multiply_last_rows(last_rows, b, inner, block.rows - whole_rows, width, panel);
          store(whole_rows, block.rows - whole_rows);
        }
      }
    }
  }
}

void multiply(const Block& block) {
  const bool few = block.rows <= 8 && block.transposed_b && !block.transposed_a;
  const std::size_t done = few ? multiply_few_rows(block) : 0;
  if (done == block.columns) return;
  Block rest = block;
  rest.columns -= done;
  rest.b += done * (block.transposed_b ? block.b_step : 1);
  rest.c += done;
  multiply_columns(rest);
}

/// Whether the processor converts between half and float.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define WYE_HAS_F16C 1
#else
#define WYE_HAS_F16C 0
#endif

/// Convert numbers of other types to floats, exactly.
using Ints = hn::RebindToSigned<D>;
V widened(D d, const half* from) {
#if WYE_HAS_F16C
  const hn::Rebind<hwy::float16_t, D> halves;
  const V converted = hn::PromoteTo(d, hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(from)));
  // The instruction changes the bits of signaling NaN.
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(converted)))) return converted;
#endif
  const hn::RebindToUnsigned<D> words;
  const auto bits = hn::PromoteTo(
      words, hn::LoadU(hn::Rebind<std::uint16_t, D>(), reinterpret_cast<const std::uint16_t*>(from)));
  const auto size = hn::And(bits, hn::Set(words, 0x7fffu));
  const auto sign = hn::ShiftLeft<16>(hn::Xor(bits, size));
  // Numbers above 2^-14 get another exponent, infinity and NaN the largest; smaller numbers are
  // multiples of 2^-24.
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

void narrow_half(const float* HWY_RESTRICT from, std::size_t n, half* HWY_RESTRICT to) {
  std::size_t i = 0;
#if WYE_HAS_F16C
  const D d;
  const hn::Rebind<hwy::float16_t, D> halves;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::DemoteTo(halves, hn::LoadU(d, from + i)), halves,
               reinterpret_cast<hwy::float16_t*>(to + i));
#endif
  for (; i < n; ++i) to[i] = half(from[i]);
}
#undef WYE_HAS_F16C

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(multiply);
HWY_EXPORT(widen_half);
HWY_EXPORT(widen_bfloat16);
HWY_EXPORT(widen_int8);
HWY_EXPORT(narrow_half);

void multiply_any(const Block& block) { multiply(block); }

/// Converts a stretch of the block's rows and columns to floats and multiplies them. Sums of 512
/// products of 8 bits are below 2^24, so floats are exact.
template <class T, class C>
void multiply_any(const BlockOf<T, C>& block) {
  constexpr std::size_t stretch = 512;
  constexpr bool whole = std::is_same_v<C, std::int32_t>;
  const auto memory = hwy::AllocateAligned<float>(stretch * (block.rows + block.columns) +
                                                  (whole ? block.rows * block.columns : 0));
  float *const a = memory.get(), *const b = a + stretch * block.rows,
               *const sums = b + stretch * block.columns;
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

/// Calls `f` for the blocks of c in `range`, or for those strips of them that it has: with the
/// block without its c, its column and its first element in c. Two blocks below each other are one:
/// b is packed once for them.
template <class C, class T, class F>
void for_blocks(Range range, std::span<const T> a, std::span<const T> b, const Product& shape, F f) {
  const std::uint64_t across = (shape.columns + block_side - 1) / block_side;
  const std::uint64_t down = (shape.rows + block_side - 1) / block_side;
  const Range items = below(range, blocks_of(shape) * items_per_block);
  constexpr std::uint64_t strips = items_per_block / items_per_strip, side = block_side / strips;
  const std::uint64_t last = items.last / items_per_strip;
  for (std::uint64_t strip = items.first / items_per_strip, next = strip; strip < last; strip = next) {
    const std::uint64_t number = strip / strips, first_column = strip % strips * side;
    const std::uint64_t n = number / (across * down), at = number % (across * down);
    const std::uint64_t row = at % down * block_side, column = at / down * block_side + first_column;
    const std::uint64_t whole = first_column == 0 ? (last - strip) / strips : 1;
    const std::uint64_t most = std::min(down - at % down, blocks_at_once);
    const std::uint64_t blocks = std::clamp<std::uint64_t>(whole, 1, most);
    next = std::min(last, (number + blocks) * strips);
    if (column >= shape.columns) continue;
    const std::uint64_t columns =
        std::min({(next - strip) * side, std::uint64_t{block_side}, shape.columns - column});
    const std::uint64_t of_row = row * (shape.transposed_a ? 1 : shape.inner),
                        of_column = column * (shape.transposed_b ? shape.inner : 1);
    f(BlockOf<T, C>{.rows = std::min<std::size_t>(blocks * block_side, shape.rows - row),
                    .columns = columns,
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
  constexpr std::size_t side = block_side, most = blocks_at_once * side * side;
  const auto memory = hwy::AllocateAligned<float>(most + 2 * side);
  float *const block_sums = memory.get(), *const wide_bias = block_sums + most,
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
  HWY_DYNAMIC_DISPATCH(narrow_half)(from.data(), from.size(), to);
}
void narrow(std::span<const float> from, bfloat16* to) {
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = bfloat16(from[i]);
}

}  // namespace wye::workloads::cpu
#endif
