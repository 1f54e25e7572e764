#include "per_target.hpp"

#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "cpu.hpp"

#ifndef WYE_WORKLOADS_QUANTIZED_HEADER
#define WYE_WORKLOADS_QUANTIZED_HEADER
namespace wye::inline v0::workloads::cpu {

/// A block is scale (q - zero) + minimum.
struct BlockHeader {
  float scale = 0;
  float zero = 0;
  float minimum = 0;
};

/// Rows of blocks q8_0, unpacked once for many columns.
struct Int8Rows {
  const std::int16_t* integers = nullptr;  ///< 32 of each block
  const float* scales = nullptr;           ///< of each block
  const float* sums = nullptr;             ///< of the integers of each block, times its scale
};

}  // namespace wye::workloads::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
/// Half of a block has at least 16 elements.
using D = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<D>;
using V = hn::Vec<D>;

HWY_INLINE float half_at(const std::uint8_t* from) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
  // Without an instruction for it, Highway takes NaN and infinities for numbers.
  half number;
  std::memcpy(&number.bits, from, sizeof number.bits);
  return static_cast<float>(number);
#else
  const hn::CappedTag<float, 1> d;
  hwy::float16_t number;
  std::memcpy(&number, from, sizeof number);
  return hn::GetLane(hn::PromoteTo(d, hn::Load(hn::Rebind<hwy::float16_t, decltype(d)>(), &number)));
#endif
}
template <BlockType type>
HWY_INLINE BlockHeader header_of(const std::uint8_t* block, float scale) {
  BlockHeader header{.scale = scale};
  if constexpr (type == BlockType::q4_0) {
    header.zero = 8;
  } else if constexpr (type == BlockType::q4_1) {
    header.minimum = half_at(block + 2);
  } else if constexpr (type != BlockType::q8_0) {
    std::int16_t zero = 0;
    std::memcpy(&zero, block + 2, sizeof zero);
    header.zero = zero;
  }
  return header;
}

/// Sets `scales` to those of `count` blocks of so many bytes, at most as many as a vector has
/// lanes.
HWY_INLINE void read_scales(const std::uint8_t* blocks, std::size_t count, std::size_t bytes, float* scales) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  const D d;
  const hn::Rebind<hwy::float16_t, D> halves;
  if (count == hn::Lanes(d) && 3 * bytes < 64) {
    // A vector that begins at one header has the next three, too. Highway 1.0 has no lookup of 16
    // bits.
    const hn::Repartition<std::uint16_t, D> d16;
    const auto fourth = hn::And(hn::Iota(d16, 0), hn::Set(d16, std::uint16_t{3}));
    const auto places = hn::Mul(fourth, hn::Set(d16, static_cast<std::uint16_t>(bytes / 2)));
    auto headers = hn::Zero(d16);
    for (std::size_t i = 0; i < 16; i += 4) {
      const auto four = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(blocks + i * bytes));
      headers.raw = _mm512_mask_permutexvar_epi16(headers.raw, 15u << i, places.raw, four.raw);
    }
    return hn::Store(hn::PromoteTo(d, hn::BitCast(halves, hn::LowerHalf(headers))), d, scales);
  }
  if (count == hn::Lanes(d)) {
    const Ints ints;
    const hn::Rebind<std::uint16_t, D> words;
    const auto offsets = hn::Mul(hn::Iota(ints, 0), hn::Set(ints, static_cast<int>(bytes)));
    const auto headers = hn::GatherOffset(ints, reinterpret_cast<const int*>(blocks), offsets);
    const auto low = hn::TruncateTo(words, hn::BitCast(hn::RebindToUnsigned<D>(), headers));
    return hn::Store(hn::PromoteTo(d, hn::BitCast(halves, low)), d, scales);
  }
#endif
  for (std::size_t i = 0; i < count; ++i) scales[i] = half_at(blocks + i * bytes);
}

template <BlockType type>
inline constexpr bool is_narrow = layout_of({type}).bits == 4;
template <BlockType type>
inline constexpr bool has_minimum = type == BlockType::q4_1;

/// Returns a layout of blocks of this type. For types with one layout it is a constant.
template <BlockType type>
HWY_INLINE constexpr BlockLayout known_layout(BlockLayout layout) {
  return type == BlockType::int4 || type == BlockType::int8 ? layout : layout_of({type});
}

/// Calls `f` with the type of blocks as a constant.
template <class F>
HWY_INLINE void with_type(BlockLayout layout, F f) {
  switch (static_cast<BlockType>(layout.type)) {
    case BlockType::q4_0: return f(std::integral_constant<BlockType, BlockType::q4_0>());
    case BlockType::q4_1: return f(std::integral_constant<BlockType, BlockType::q4_1>());
    case BlockType::q8_0: return f(std::integral_constant<BlockType, BlockType::q8_0>());
    case BlockType::int4: return f(std::integral_constant<BlockType, BlockType::int4>());
    case BlockType::int8: return f(std::integral_constant<BlockType, BlockType::int8>());
  }
}

/// Calls `take(i, v)` for vectors of the n elements of a block, as floats. v has elements i and
/// later ones.
template <BlockType type, class F>
HWY_INLINE void each_vector(const std::uint8_t* integers, std::size_t n, const BlockHeader& header, F take) {
  const D d;
  const Ints ints;
  const auto elements = [=](V q) HWY_ATTR {
    const V product = hn::Mul(hn::Set(d, header.scale), hn::Sub(q, hn::Set(d, header.zero)));
    return has_minimum<type> ? hn::Add(product, hn::Set(d, header.minimum)) : product;
  };
  if constexpr (is_narrow<type>) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    // A vector has the element of every number of four bits. The lookup ignores the other bits of a
    // number.
    const V table = elements(hn::Iota(d, 0.0f));
    const auto of = [=](hn::Vec<Ints> q)
                        HWY_ATTR { return hn::TableLookupLanes(table, hn::Indices512<float>{q.raw}); };
#else
    const auto of = [=](hn::Vec<Ints> q)
                        HWY_ATTR { return elements(hn::ConvertTo(d, hn::And(q, hn::Set(ints, 15)))); };
#endif
    for (std::size_t i = 0; i < n / 2; i += hn::Lanes(d)) {
      const auto both = hn::PromoteTo(ints, hn::LoadU(hn::Rebind<std::uint8_t, D>(), integers + i));
      take(i, of(both));
      take(i + n / 2, of(hn::ShiftRight<4>(both)));
    }
  } else {
    for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
      const auto* at = reinterpret_cast<const std::int8_t*>(integers + i);
      const auto wide = hn::PromoteTo(ints, hn::LoadU(hn::Rebind<std::int8_t, D>(), at));
      take(i, elements(hn::ConvertTo(d, wide)));
    }
  }
}

/// Converts `count` blocks to floats.
template <BlockType type>
void widen_blocks_as(const std::uint8_t* blocks, std::size_t count, BlockLayout given,
                     float* HWY_RESTRICT to) {
  const D d;
  const BlockLayout layout = known_layout<type>(given);
  const std::size_t n = layout.group(), bytes = layout.bytes();
  for (; count != 0; --count, blocks += bytes, to += n)
    each_vector<type>(blocks + layout.header, n, header_of<type>(blocks, half_at(blocks)),
                      [&](std::size_t i, V v) HWY_ATTR { hn::StoreU(v, d, to + i); });
}
void widen_blocks(const std::uint8_t* blocks, std::size_t count, BlockLayout layout, float* to) {
  with_type(layout, [&](auto type) HWY_ATTR { widen_blocks_as<type()>(blocks, count, layout, to); });
}

/// Sets y[r y_step + c] to the product of row r of x, of `inner` elements, with row c of weights.
/// The bits depend neither on `rows` nor on `columns`.
template <BlockType type, std::size_t rows, std::size_t columns>
void multiply_tile(const float* x, std::size_t inner, const std::uint8_t* weights, std::size_t row_bytes,
                   BlockLayout given, float* y, std::size_t y_step) {
  const D d;
  const BlockLayout layout = known_layout<type>(given);
  const std::size_t n = layout.group(), bytes = layout.bytes();
  constexpr std::size_t most = hn::MaxLanes(D());
  V sums[rows][columns];
  for (auto& of_row : sums)
    for (V& sum : of_row) sum = hn::Zero(d);
  for (std::size_t blocks = inner / n, count = 0; blocks != 0; blocks -= count) {
    HWY_ALIGN float scales[columns][most];
    count = std::min(blocks, most);
    for (std::size_t c = 0; c < columns; ++c) read_scales(weights + c * row_bytes, count, bytes, scales[c]);
    for (std::size_t k = 0; k < count; ++k, weights += bytes, x += n)
      for (std::size_t c = 0; c < columns; ++c) {
        const std::uint8_t* const block = weights + c * row_bytes;
        hwy::Prefetch(block + columns * row_bytes);  // of the next tile
        each_vector<type>(block + layout.header, n, header_of<type>(block, scales[c][k]),
                          [&](std::size_t i, V v) HWY_ATTR {
                            for (std::size_t r = 0; r < rows; ++r)
                              sums[r][c] = hn::MulAdd(v, hn::LoadU(d, x + r * inner + i), sums[r][c]);
                          });
      }
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) y[r * y_step + c] = hn::GetLane(hn::SumOfLanes(d, sums[r][c]));
}

/// Calls `f(rows of a tile, its columns, first row, first column)` for tiles of at most
/// `rows_per_tile` rows, with constants.
template <class F>
HWY_INLINE void for_tiles(std::size_t rows, std::size_t columns, F f) {
  constexpr std::integral_constant<std::size_t, 1> one;
  constexpr std::integral_constant<std::size_t, rows_per_tile> all_rows;
  constexpr std::integral_constant<std::size_t, 4> wide;
  const auto for_rows = [&](auto width, std::size_t c) HWY_ATTR {
    if (rows == rows_per_tile) return f(all_rows, width, std::size_t{0}, c);
    for (std::size_t r = 0; r < rows; ++r) f(one, width, r, c);
  };
  std::size_t c = 0;
  for (; c + wide <= columns; c += wide) for_rows(wide, c);
  for (; c < columns; ++c) for_rows(one, c);
}

/// Like `multiply_tile`, for at most `rows_per_tile` rows and any number of columns.
void multiply_rows(const float* x, std::size_t rows, std::size_t inner, const std::uint8_t* weights,
                   std::size_t columns, BlockLayout layout, float* y, std::size_t y_step) {
  const std::size_t row_bytes = layout.bytes_of(inner);
  with_type(layout, [&](auto type) HWY_ATTR {
    for_tiles(rows, columns, [&](auto of_rows, auto of_columns, std::size_t r, std::size_t c) HWY_ATTR {
      multiply_tile<type(), of_rows(), of_columns()>(x + r * inner, inner, weights + c * row_bytes, row_bytes,
                                                     layout, y + r * y_step + c, y_step);
    });
  });
}

/// Half of a block has at least 16 elements.
using D16 = hn::CappedTag<std::int16_t, 16>;
using D32 = hn::RepartitionToWide<D16>;

/// Returns integers i and later ones of a block of n.
template <bool narrow>
HWY_INLINE hn::Vec<D16> load_integers(const std::uint8_t* integers, std::size_t n, std::size_t i) {
  const D16 d;
  const hn::Rebind<std::uint8_t, D16> bytes;
  if constexpr (!narrow)
    return hn::PromoteTo(d, hn::LoadU(hn::RebindToSigned<decltype(bytes)>(),
                                      reinterpret_cast<const std::int8_t*>(integers + i)));
  else if (i < n / 2)
    return hn::And(hn::PromoteTo(d, hn::LoadU(bytes, integers + i)), hn::Set(d, std::int16_t{15}));
  else
    return hn::ShiftRight<4>(hn::PromoteTo(d, hn::LoadU(bytes, integers + i - n / 2)));
}

/// Unpacks `count` blocks q8_0.
void unpack_int8(const std::uint8_t* blocks, std::size_t count, std::int16_t* integers, float* scales,
                 float* sums) {
  const D16 d;
  for (std::size_t k = 0; k < count; ++k, blocks += 34) {
    scales[k] = half_at(blocks);
    for (std::size_t i = 0; i < 32; i += hn::Lanes(d))
      hn::StoreU(load_integers<false>(blocks + 2, 32, i), d, integers + 32 * k + i);
    int sum = 0;
    for (std::size_t i = 0; i < 32; ++i) sum += integers[32 * k + i];
    sums[k] = scales[k] * static_cast<float>(sum);
  }
}

/// Sets y[r y_step + c] to the product of row r of x, of `blocks` blocks, with row c of weights.
template <BlockType type, std::size_t rows, std::size_t columns>
void multiply_int8_tile(const Int8Rows& x, std::size_t blocks, const std::uint8_t* weights,
                        std::size_t row_bytes, BlockLayout given, float* y, std::size_t y_step) {
  const BlockLayout layout = known_layout<type>(given);
  const D16 d16;
  const D32 d32;
  const hn::RebindToFloat<D32> d;
  using Integers = hn::Vec<D32>;
  constexpr std::size_t most = hn::MaxLanes(D()), lanes = hn::MaxLanes(D16()), vectors = 32 / lanes;
  const std::size_t n = layout.group(), per_block = n / 32, bytes = layout.bytes();
  hn::Vec<decltype(d)> sums[rows][columns];
  float minima[rows][columns] = {};
  for (auto& of_row : sums)
    for (auto& sum : of_row) sum = hn::Zero(d);
  std::size_t first = 0;  // block of x
  for (std::size_t rest = blocks / per_block, count = 0; rest != 0; rest -= count) {
    HWY_ALIGN float scales[columns][most];
    count = std::min(rest, most);
    for (std::size_t c = 0; c < columns; ++c) read_scales(weights + c * row_bytes, count, bytes, scales[c]);
    for (std::size_t k = 0; k < count; ++k, weights += bytes, first += per_block)
      for (std::size_t c = 0; c < columns; ++c) {
        const std::uint8_t* const at = weights + c * row_bytes;
        hwy::Prefetch(at + columns * row_bytes);  // of the next tile
        const BlockHeader header = header_of<type>(at, scales[c][k]);
        // An integer less this part of the zero has 16 bits. Zeros that `quantize` makes have no
        // other part.
        const int zero = static_cast<int>(header.zero), part_of_zero = std::clamp(zero, -16384, 16384);
        const auto near_zero = hn::Set(d16, static_cast<std::int16_t>(part_of_zero));
        for (std::size_t part = 0; part < per_block; ++part) {
          hn::Vec<D16> q[vectors];
          for (std::size_t v = 0; v < vectors; ++v)
            q[v] = hn::Sub(load_integers<is_narrow<type>>(at + layout.header, n, part * 32 + v * lanes),
                           near_zero);
          for (std::size_t r = 0; r < rows; ++r) {
            const std::size_t block = r * blocks + first + part;
            Integers products = hn::Zero(d32), others = products;
            for (std::size_t v = 0; v < vectors; ++v)
              products = hn::ReorderWidenMulAccumulate(
                  d32, q[v], hn::LoadU(d16, x.integers + 32 * block + v * lanes), products, others);
            const auto scale = hn::Mul(hn::Set(d, x.scales[block]), hn::Set(d, header.scale));
            sums[r][c] = hn::MulAdd(scale, hn::ConvertTo(d, hn::Add(products, others)), sums[r][c]);
            if constexpr (has_minimum<type>) minima[r][c] += x.sums[block] * header.minimum;
            if (zero != part_of_zero)
              minima[r][c] -= x.sums[block] * header.scale * static_cast<float>(zero - part_of_zero);
          }
        }
      }
  }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c)
      y[r * y_step + c] = hn::GetLane(hn::SumOfLanes(d, sums[r][c])) + minima[r][c];
}

/// Like `multiply_int8_tile`, for at most `rows_per_tile` rows and any number of columns.
void multiply_int8(const Int8Rows& x, std::size_t rows, std::size_t blocks, const std::uint8_t* weights,
                   std::size_t columns, const BlockLayout& layout, float* y, std::size_t y_step) {
  const std::size_t row_bytes = layout.bytes_of(32 * blocks);
  with_type(layout, [&](auto type) HWY_ATTR {
    for_tiles(rows, columns, [&](auto of_rows, auto of_columns, std::size_t r, std::size_t c) HWY_ATTR {
      multiply_int8_tile<type(), of_rows(), of_columns()>(
          {x.integers + r * blocks * 32, x.scales + r * blocks, x.sums + r * blocks}, blocks,
          weights + c * row_bytes, row_bytes, layout, y + r * y_step + c, y_step);
    });
  });
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(widen_blocks);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(unpack_int8);
HWY_EXPORT(multiply_int8);

/// The largest element by size, the first of several, and the range.
struct Extent {
  float largest = 0;
  float low = 0;
  float high = 0;
  bool finite = true;
};
Extent extent_of(const float* x, std::size_t n) {
  Extent extent{.low = x[0], .high = x[0]};
  for (std::size_t i = 0; i < n; ++i) {
    extent.finite = extent.finite && std::isfinite(x[i]);
    if (std::abs(x[i]) > std::abs(extent.largest)) extent.largest = x[i];
    if (x[i] < extent.low) extent.low = x[i];
    if (x[i] > extent.high) extent.high = x[i];
  }
  return extent;
}

/// How the elements of a block become integers: (x - from) by + shift, rounded towards zero and at
/// most `most`.
struct Rounding {
  std::uint16_t scale = 0;   ///< bits of the scale
  std::uint16_t second = 0;  ///< bits of the minimum or of the zero point
  float from = 0;
  float by = 0;
  float shift = 0;
};

/// Below 2^-100 a range counts as zero.
float at_least(float range) { return std::abs(range) < 0x1p-100f ? 0.0f : range; }

Rounding rounding_of(const Extent& extent, BlockType type) {
  Rounding made;
  float scale = 0;
  if (type == BlockType::q4_0) {
    scale = at_least(extent.largest) / -8;
    made.shift = 8.5f;
  } else if (type == BlockType::q4_1) {
    scale = at_least(extent.high - extent.low) / 15;
    made.second = half(extent.low).bits;
    made.from = extent.low;
    made.shift = 0.5f;
  } else if (type == BlockType::q8_0) {
    scale = at_least(std::abs(extent.largest)) / 127;
  } else {
    const float most = type == BlockType::int4 ? 15 : 255, low = std::min(extent.low, 0.0f);
    scale = std::min(at_least(std::max(extent.high, 0.0f) - low) / most, 65504.0f);
    scale = static_cast<float>(half(scale));
    const float scaled = -low * (scale == 0 ? 0.0f : 1 / scale);
    const float zero = std::min(std::floor(scaled + 0.5f), most);
    made.second = static_cast<std::uint16_t>(static_cast<int>(zero) - (type == BlockType::int4 ? 0 : 128));
    made.shift = zero + 0.5f;
  }
  made.scale = half(scale).bits;
  made.by = scale == 0 ? 0.0f : 1 / scale;
  return made;
}

/// Returns the integer of an element; the lowest is 0, or for q8_0 -127.
int integer_of(float x, const Rounding& by, BlockType type) {
  const float product = (x - by.from) * by.by;
  if (type == BlockType::q8_0) return static_cast<int>(std::round(product));
  const float most = type == BlockType::int8 ? 255 : 15;
  return static_cast<int>(std::clamp(std::floor(product + by.shift), 0.0f, most));
}

void quantize_block(const float* x, std::uint8_t* to, BlockLayout layout) {
  const auto type = static_cast<BlockType>(layout.type);
  const std::size_t n = layout.group();
  const Extent extent = extent_of(x, n);
  const bool valid =
      extent.finite &&
      (layout.header == 2 || std::isfinite(std::max(extent.high, 0.0f) - std::min(extent.low, 0.0f)));
  const Rounding rounding = valid ? rounding_of(extent, type) : Rounding{.scale = 0x7e00};
  std::memcpy(to, &rounding.scale, 2);
  if (layout.header == 4) std::memcpy(to + 2, &rounding.second, 2);
  to += layout.header;
  const auto integer = [&](std::size_t i) { return valid ? integer_of(x[i], rounding, type) : 0; };
  if (layout.bits == 4) {
    for (std::size_t i = 0; i < n / 2; ++i)
      to[i] = static_cast<std::uint8_t>(integer(i) | integer(i + n / 2) << 4);
  } else {
    const int lowest = type == BlockType::int8 && valid ? -128 : 0;
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::uint8_t>(integer(i) + lowest);
  }
}

/// Computes the units of rows [row, row_end) and columns [column, column_end).
void multiply_block(std::size_t row, std::size_t row_end, std::size_t column, std::size_t column_end,
                    const float* x, const std::uint8_t* weights, float* y, const QuantizedProduct& shape,
                    BlockLayout layout) {
  constexpr std::size_t stretch = 512;
  const std::size_t columns = column_end - column, n = layout.group();
  const std::size_t row_bytes = layout.bytes_of(shape.inner);
  const auto memory = hwy::AllocateAligned<float>(stretch * columns);
  for (std::size_t first = 0; first < shape.inner || first == 0; first += stretch) {
    const std::size_t inner = std::min<std::size_t>(stretch, shape.inner - first);
    for (std::size_t i = 0; i < columns; ++i) HWY_DYNAMIC_DISPATCH(widen_blocks)
    (weights + (column + i) * row_bytes + layout.bytes_of(first), inner / n, layout,
     memory.get() + i * inner);
    multiply(Block{.rows = row_end - row,
                   .columns = columns,
                   .inner = inner,
                   .a = x + row * shape.inner + first,
                   .a_step = shape.inner,
                   .b = memory.get(),
                   .b_step = inner,
                   .transposed_b = true,
                   .c = y + row * shape.columns + column,
                   .c_step = shape.columns,
                   .add = first > 0});
  }
}

Range units_in(Range range, const QuantizedProduct& shape) {
  const Range items = below(range, units_of(shape) * lanes_per_unit);
  return {items.first / lanes_per_unit, items.last / lanes_per_unit, range.grid};
}

/// Calls `f(first row, rows, first column, columns)` for adjacent units of a tile of rows.
template <class F>
void for_units(Range range, const QuantizedProduct& shape, F f) {
  const Range units = units_in(range, shape);
  for (std::uint64_t unit = units.first, next = unit; unit < units.last; unit = next) {
    const std::uint64_t block = unit / columns_per_block, row = block % shape.tiles * rows_per_tile;
    const std::uint64_t column = block / shape.tiles * columns_per_block + unit % columns_per_block;
    next = std::min(units.last, (block + 1) * columns_per_block);
    if (column < shape.columns && row < shape.rows)
      f(row, std::min<std::uint64_t>(shape.rows - row, rows_per_tile), column,
        std::min(shape.columns - column, next - unit));
  }
}

}  // namespace

void quantize(Range range, std::span<const float> x, std::span<std::uint8_t> blocks, BlockLayout layout) {
  const Range items = below(range, x.size() >> layout.group_log2);
  for (std::uint64_t i = items.first; i < items.last; ++i)
    quantize_block(x.data() + (i << layout.group_log2), blocks.data() + i * layout.bytes(), layout);
}

void dequantize(Range range, std::span<const std::uint8_t> blocks, std::span<float> x, BlockLayout layout) {
  // Ranges begin at multiples of 16,384 elements, so that blocks are whole.
  const Range items = below(range, x.size());
  const std::uint64_t first = items.first >> layout.group_log2, last = items.last >> layout.group_log2;
  if (first == last) return;
  HWY_DYNAMIC_DISPATCH(widen_blocks)
  (blocks.data() + first * layout.bytes(), last - first, layout, x.data() + (first << layout.group_log2));
}

void multiply_few_rows(Range range, std::span<const float> x, std::span<const std::uint8_t> weights,
                       std::span<float> y, QuantizedProduct shape, BlockLayout layout) {
  const std::size_t row_bytes = layout.bytes_of(shape.inner);
  for_units(range, shape,
            [&](std::uint64_t row, std::uint64_t rows, std::uint64_t column, std::uint64_t columns) {
              HWY_DYNAMIC_DISPATCH(multiply_rows)
              (x.data() + row * shape.inner, rows, shape.inner, weights.data() + column * row_bytes, columns,
               layout, y.data() + row * shape.columns + column, shape.columns);
            });
}

void multiply_int8_rows(Range range, std::span<const std::uint8_t> x, std::span<const std::uint8_t> weights,
                        std::span<float> y, QuantizedProduct shape, BlockLayout layout) {
  const std::size_t blocks = shape.inner / 32;
  const std::size_t bytes = blocks * block_bytes({.type = BlockType::q8_0});
  const std::size_t row_bytes = layout.bytes_of(shape.inner);
  std::vector<std::int16_t> integers;
  std::vector<float> scales, sums;
  for_units(
      range, shape, [&](std::uint64_t row, std::uint64_t rows, std::uint64_t column, std::uint64_t columns) {
        integers.resize(rows * blocks * 32);
        scales.resize(rows * blocks);
        sums.resize(rows * blocks);
        HWY_DYNAMIC_DISPATCH(unpack_int8)
        (x.data() + row * bytes, rows * blocks, integers.data(), scales.data(), sums.data());
        HWY_DYNAMIC_DISPATCH(multiply_int8)
        ({integers.data(), scales.data(), sums.data()}, rows, blocks, weights.data() + column * row_bytes,
         columns, layout, y.data() + row * shape.columns + column, shape.columns);
      });
}

void multiply_many_rows(Range range, std::span<const float> x, std::span<const std::uint8_t> weights,
                        std::span<float> y, QuantizedProduct shape, BlockLayout layout) {
  // Blocks of 256 columns and as many tiles of rows as the range has, up to those of two blocks.
  const Range units = units_in(range, shape);
  std::uint64_t tile = units.first / columns_per_block;
  const std::uint64_t last = units.last / columns_per_block;
  while (tile < last) {
    const std::uint64_t of_columns = tile / shape.tiles, tile_row = tile % shape.tiles;
    const std::uint64_t count =
        std::min({last - tile, shape.tiles - tile_row, blocks_at_once * block_side / rows_per_tile});
    const std::uint64_t row = tile_row * rows_per_tile, column = of_columns * columns_per_block;
    if (row < shape.rows && column < shape.columns)
      multiply_block(row, std::min<std::uint64_t>(shape.rows, row + count * rows_per_tile), column,
                     std::min<std::uint64_t>(shape.columns, column + columns_per_block), x.data(),
                     weights.data(), y.data(), shape, layout);
    tile += count;
  }
}

}  // namespace wye::workloads::cpu
#endif
