#include "per_target.hpp"

#include <hwy/aligned_allocator.h>
#include <hwy/cache_control.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "cpu.hpp"
#include "unroll.hpp"

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

#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
/// A lane is a column of weights, and has 4 of its integers.
using Bytes = hn::CappedTag<std::uint8_t, 64>;
using Shorts = hn::Repartition<std::int16_t, Bytes>;
using Columns = hn::Repartition<std::int32_t, Bytes>;
constexpr std::size_t panel_columns = hn::MaxLanes(Columns());
static_assert(panel_columns == hn::MaxLanes(D()));
/// The blocks of x whose packed weights fit into the first-level cache.
constexpr std::size_t packed_blocks = 16;

/// Weights of a block of x, in as many columns as a panel has. A product with a block is scale
/// (sum of q x - zero sum of x) + minimum sum of x.
template <BlockType type>
struct ColumnBlocks {
  /// Numbers of 4 bits: the integers, or the low bits and then the high bits of integers + 128.
  hn::Vec<Bytes> integers[is_narrow<type> ? 8 : 16];
  V scale;
  V minimum;
  hn::Vec<Columns> zero;
};

/// Loads 16 bytes of each column: of column 4 l + i into block l of vector i.
template <class DV>
HWY_INLINE hn::Vec<DV> load_fourth_columns(DV d, const std::uint8_t* from, std::size_t step) {
  if constexpr (hn::MaxLanes(DV()) == 16) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<DV> half;
    const std::size_t columns = hn::MaxLanes(half) / 4;
    return hn::Combine(d, load_fourth_columns(half, from + columns * step, step),
                       load_fourth_columns(half, from, step));
  }
}
/// Sets v[i] to bytes 4 i to 4 i + 3 of each column.
HWY_INLINE void load_fours(const std::uint8_t* from, std::size_t step, hn::Vec<Bytes>* v) {
  const Bytes d;
  const hn::Repartition<std::uint32_t, Bytes> d32;
  const hn::Repartition<std::uint64_t, Bytes> d64;
  hn::Vec<decltype(d32)> a[4];
  for (std::size_t i = 0; i < 4; ++i) a[i] = hn::BitCast(d32, load_fourth_columns(d, from + i * step, step));
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, a[0], a[1]));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, a[0], a[1]));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, a[2], a[3]));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, a[2], a[3]));
  v[0] = hn::BitCast(d, hn::InterleaveLower(d64, low01, low23));
  v[1] = hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23));
  v[2] = hn::BitCast(d, hn::InterleaveLower(d64, high01, high23));
  v[3] = hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23));
}
HWY_INLINE hn::Vec<Bytes> low_bits(hn::Vec<Bytes> v) { return hn::And(v, hn::Set(Bytes(), 15)); }
HWY_INLINE hn::Vec<Bytes> high_bits(hn::Vec<Bytes> v) {
  return low_bits(hn::BitCast(Bytes(), hn::ShiftRight<4>(hn::BitCast(Shorts(), v))));
}

/// Loads the half at `from` of each column.
HWY_INLINE V load_halves(const std::uint8_t* from, std::size_t step) {
#if HWY_TARGET <= HWY_AVX2
  const D d;
  const hn::Rebind<std::uint16_t, D> words;
  const auto word = [=](std::size_t column) HWY_ATTR {
    short bits = 0;
    std::memcpy(&bits, from + column * step, sizeof bits);
    return bits;
  };
  const auto eight = [&](std::size_t c) HWY_ATTR {
    return hn::Vec<hn::Full128<std::uint16_t>>{_mm_set_epi16(
        word(c + 7), word(c + 6), word(c + 5), word(c + 4), word(c + 3), word(c + 2), word(c + 1), word(c))};
  };
  const hn::Rebind<hwy::float16_t, D> halves;
#if HWY_TARGET <= HWY_AVX3
  return hn::PromoteTo(d, hn::BitCast(halves, hn::Combine(words, eight(8), eight(0))));
#else
  return hn::PromoteTo(d, hn::BitCast(halves, eight(0)));
#endif
#else
  HWY_ALIGN float numbers[panel_columns];
  for (std::size_t c = 0; c < panel_columns; ++c) numbers[c] = half_at(from + c * step);
  return hn::Load(D(), numbers);
#endif
}

/// Loads part `part` of 32 elements of the blocks at `block`, which are `step` bytes apart.
template <BlockType type>
HWY_INLINE void load_columns(const std::uint8_t* block, std::size_t part, std::size_t step,
                             BlockLayout layout, ColumnBlocks<type>& to) {
  const Bytes d;
  const std::size_t n = layout.group();
  const std::uint8_t* integers = block + layout.header;
  hn::Vec<Bytes> v[8];
  if (!is_narrow<type>) {
    load_fours(integers + 32 * part, step, v);
    load_fours(integers + 32 * part + 16, step, v + 4);
    WYE_UNROLL
    for (std::size_t i = 0; i < 8; ++i) {
      const auto raised = hn::Xor(v[i], hn::Set(d, 128));
      to.integers[i] = low_bits(raised);
      if constexpr (!is_narrow<type>) to.integers[i + 8] = high_bits(raised);
    }
  } else if (n == 32) {
    load_fours(integers, step, v);
    WYE_UNROLL
    for (std::size_t i = 0; i < 4; ++i) {
      to.integers[i] = low_bits(v[i]);
      to.integers[i + 4] = high_bits(v[i]);
    }
  } else {
    load_fours(integers + 32 * part % (n / 2), step, v);
    load_fours(integers + 32 * part % (n / 2) + 16, step, v + 4);
    WYE_UNROLL
    for (std::size_t i = 0; i < 8; ++i) to.integers[i] = 32 * part < n / 2 ? low_bits(v[i]) : high_bits(v[i]);
  }
  to.scale = load_halves(block, step);
  if constexpr (type == BlockType::q4_1) to.minimum = load_halves(block + 2, step);
  if constexpr (type == BlockType::int4 || type == BlockType::int8) {
    HWY_ALIGN std::int32_t zeros[panel_columns];
    for (std::size_t c = 0; c < panel_columns; ++c) {
      std::int16_t zero = 0;
      std::memcpy(&zero, block + c * step + 2, sizeof zero);
      zeros[c] = zero + (type == BlockType::int8 ? 128 : 0);
    }
    to.zero = hn::Load(Columns(), zeros);
  }
}

/// Adds the products of neighbors to numbers of 16 bits.
HWY_INLINE hn::Vec<Shorts> add_pairs(hn::Vec<Shorts> sums, hn::Vec<Bytes> q, hn::Vec<Bytes> x) {
#if HWY_TARGET <= HWY_AVX3
  return hn::Add(sums, hn::Vec<Shorts>{_mm512_maddubs_epi16(q.raw, x.raw)});
#elif HWY_TARGET <= HWY_AVX2
  return hn::Add(sums, hn::Vec<Shorts>{_mm256_maddubs_epi16(q.raw, x.raw)});
#else
  return hn::Add(sums, hn::Vec<Shorts>{_mm_maddubs_epi16(q.raw, x.raw)});
#endif
}
/// Adds neighbors.
HWY_INLINE hn::Vec<Columns> widened_sums(hn::Vec<Shorts> sums) {
  auto others = hn::Zero(Columns());
  return hn::ReorderWidenMulAccumulate(Columns(), sums, hn::Set(Shorts(), 1), others, others);
}

/// Blocks of rows of x: of 34 bytes, with the integers at byte 2.
struct Int8Blocks {
  const std::uint8_t* blocks = nullptr;
  std::size_t step = 0;  ///< in blocks, from row to row
  const float* scales = nullptr;
  const std::int32_t* sums = nullptr;  ///< of the integers
  std::size_t sums_step = 0;           ///< from row to row, and of scales
};

/// Adds the products of a block of each row with columns to `sums`.
template <BlockType type, std::size_t rows>
HWY_INLINE void add_int8_block(const ColumnBlocks<type>& columns, const Int8Blocks& x, std::size_t block,
                               V* sums) {
  const D d;
  const Bytes bytes;
  const Columns ints;
  // Sums of 16 products of numbers of 4 and of 8 bits are below 2^15.
  hn::Vec<Shorts> low[rows], high[rows];
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) low[r] = high[r] = hn::Zero(Shorts());
  WYE_UNROLL
  for (std::size_t i = 0; i < 8; ++i) {
    WYE_UNROLL
    for (std::size_t r = 0; r < rows; ++r) {
      std::int32_t four = 0;
      std::memcpy(&four, x.blocks + 34 * (r * x.step + block) + 2 + 4 * i, sizeof four);
      const auto of_row = hn::BitCast(bytes, hn::Set(ints, four));
      low[r] = add_pairs(low[r], columns.integers[i], of_row);
      if constexpr (!is_narrow<type>) high[r] = add_pairs(high[r], columns.integers[i + 8], of_row);
    }
  }
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) {
    const float scale = x.scales[r * x.sums_step + block];
    const std::int32_t sum = x.sums[r * x.sums_step + block];
    auto product = widened_sums(low[r]);
    if constexpr (!is_narrow<type>) product = hn::Add(product, hn::ShiftLeft<4>(widened_sums(high[r])));
    if constexpr (type == BlockType::q4_0)
      product = hn::Sub(product, hn::Set(ints, 8 * sum));
    else if constexpr (type == BlockType::q8_0)
      product = hn::Sub(product, hn::Set(ints, 128 * sum));
    else if constexpr (type != BlockType::q4_1)
      product = hn::Sub(product, hn::Mul(columns.zero, hn::Set(ints, sum)));
    sums[r] = hn::MulAdd(hn::ConvertTo(d, product), hn::Mul(columns.scale, hn::Set(d, scale)), sums[r]);
    if constexpr (has_minimum<type>)
      sums[r] = hn::MulAdd(columns.minimum, hn::Set(d, scale * static_cast<float>(sum)), sums[r]);
  }
}

/// Sets y to, or adds to it, the products of `count` blocks of rows with the columns that `at(k)`
/// returns. A sum adds its blocks one after the other, so its bits do not depend on `rows`.
template <BlockType type, std::size_t rows, class F>
HWY_INLINE void multiply_int8_panel(F at, std::size_t count, const Int8Blocks& x, bool add, float* y,
                                    std::size_t y_step) {
  const D d;
  V sums[rows];
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) sums[r] = add ? hn::LoadU(d, y + r * y_step) : hn::Zero(d);
  for (std::size_t k = 0; k < count; ++k) add_int8_block<type, rows>(at(k), x, k, sums);
  WYE_UNROLL
  for (std::size_t r = 0; r < rows; ++r) hn::StoreU(sums[r], d, y + r * y_step);
}

/// The same for any number of rows. `width` columns of a panel are in y.
template <BlockType type, class F>
HWY_INLINE void multiply_int8_rows(F at, std::size_t count, Int8Blocks x, std::size_t rows, std::size_t width,
                                   bool add, float* y, std::size_t y_step) {
  HWY_ALIGN float part[rows_per_tile * panel_columns] = {};
  const auto next = [&](auto some) HWY_ATTR {
    const bool is_whole = width == panel_columns;
    for (std::size_t r = 0; add && !is_whole && r < some(); ++r)
      std::copy_n(y + r * y_step, width, part + r * panel_columns);
    multiply_int8_panel<type, some()>(at, count, x, add, is_whole ? y : part,
                                      is_whole ? y_step : panel_columns);
    for (std::size_t r = 0; !is_whole && r < some(); ++r)
      std::copy_n(part + r * panel_columns, width, y + r * y_step);
    rows -= some();
    y += some() * y_step;
    x.blocks += some() * x.step * 34;
    x.scales += some() * x.sums_step;
    x.sums += some() * x.sums_step;
  };
  while (rows >= 4) next(std::integral_constant<std::size_t, 4>());
  if (rows >= 2) next(std::integral_constant<std::size_t, 2>());
  if (rows == 1) next(std::integral_constant<std::size_t, 1>());
}

template <BlockType type>
void multiply_int8_as(const std::uint8_t* x, std::size_t rows, std::size_t blocks,
                      const std::uint8_t* weights, std::size_t columns, BlockLayout given, float* y,
                      std::size_t y_step) {
  const BlockLayout layout = known_layout<type>(given);
  const std::size_t row_bytes = layout.bytes_of(32 * blocks), per_block = layout.group() / 32;
  // Weights are packed for many rows only.
  const std::size_t stretch = rows <= rows_per_tile ? std::max<std::size_t>(blocks, 1) : packed_blocks;
  const auto scales = hwy::AllocateAligned<float>(rows * stretch);
  const auto sums = hwy::AllocateAligned<std::int32_t>(rows * stretch);
  const auto packed = hwy::AllocateAligned<ColumnBlocks<type>>(packed_blocks);
  // The last columns, if they are fewer than those of a panel, with others that are zeros.
  const std::size_t whole = columns / panel_columns * panel_columns;
  const std::size_t last_bytes = layout.bytes_of(32 * std::min(blocks, stretch));
  std::vector<std::uint8_t> last(whole < columns ? panel_columns * last_bytes : 0);
  for (std::size_t first = 0; first < blocks || first == 0; first += stretch) {
    const std::size_t count = std::min(stretch, blocks - first);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t k = 0; k < count; ++k) {
        const std::uint8_t* const block = x + 34 * (r * blocks + first + k);
        int sum = 0;
        for (std::size_t i = 2; i < 34; ++i) sum += static_cast<std::int8_t>(block[i]);
        scales[r * stretch + k] = half_at(block);
        sums[r * stretch + k] = sum;
      }
    const Int8Blocks of_x{x + 34 * first, blocks, scales.get(), sums.get(), stretch};
    for (std::size_t c = 0; c < columns; c += panel_columns) {
      const std::size_t width = std::min(panel_columns, columns - c);
      const std::uint8_t* from = weights + c * row_bytes + layout.bytes_of(32 * first);
      std::size_t step = row_bytes;
      if (width < panel_columns) {
        for (std::size_t i = 0; i < width; ++i)
          std::copy_n(from + i * row_bytes, layout.bytes_of(32 * count), last.data() + i * last_bytes);
        from = last.data();
        step = last_bytes;
      }
      const auto load = [&](std::size_t k, ColumnBlocks<type>& to) HWY_ATTR {
        load_columns<type>(from + k / per_block * layout.bytes(), k % per_block, step, layout, to);
      };
      if (rows <= rows_per_tile) {
        const auto loaded = [&](std::size_t k) HWY_ATTR {
          ColumnBlocks<type> some;
          load(k, some);
          return some;
        };
        multiply_int8_rows<type>(loaded, count, of_x, rows, width, false, y + c, y_step);
      } else {
        for (std::size_t k = 0; k < count; ++k) load(k, packed[k]);
        const auto at = [&](std::size_t k) HWY_ATTR -> const ColumnBlocks<type>& { return packed[k]; };
        multiply_int8_rows<type>(at, count, of_x, rows, width, first > 0, y + c, y_step);
      }
    }
  }
}

/// Sets y[r y_step + c] to the product of row r of x, of `blocks` blocks q8_0, with row c of
/// weights. The bits depend neither on `rows` nor on `columns`.
void multiply_int8(const std::uint8_t* x, std::size_t rows, std::size_t blocks, const std::uint8_t* weights,
                   std::size_t columns, const BlockLayout& layout, float* y, std::size_t y_step) {
#if HWY_TARGET <= HWY_AVX3 && (HWY_TARGETS & HWY_AVX2)
  // Unpacking dominates if rows are few: 8 columns at a time, on more ports, are faster than 16. The
  // bits are the same.
  if (rows <= rows_per_tile)
    return N_AVX2::multiply_int8(x, rows, blocks, weights, columns, layout, y, y_step);
#endif
  with_type(layout, [&](auto type) HWY_ATTR {
    multiply_int8_as<type()>(x, rows, blocks, weights, columns, layout, y, y_step);
  });
}

#else
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

/// Like `multiply_int8_tile`, for any number of rows and columns.
void multiply_int8(const std::uint8_t* x, std::size_t rows, std::size_t blocks, const std::uint8_t* weights,
                   std::size_t columns, const BlockLayout& layout, float* y, std::size_t y_step) {
  const std::size_t row_bytes = layout.bytes_of(32 * blocks),
                    of_tile = rows_per_tile * std::max<std::size_t>(blocks, 1);
  const auto integers = hwy::AllocateAligned<std::int16_t>(32 * of_tile);
  const auto scales = hwy::AllocateAligned<float>(2 * of_tile);
  const Int8Rows unpacked{integers.get(), scales.get(), scales.get() + of_tile};
  for (; rows != 0; rows -= std::min<std::size_t>(rows, rows_per_tile)) {
    const std::size_t some = std::min<std::size_t>(rows, rows_per_tile);
    unpack_int8(x, some * blocks, integers.get(), scales.get(), scales.get() + of_tile);
    with_type(layout, [&](auto type) HWY_ATTR {
      for_tiles(some, columns, [&](auto of_rows, auto of_columns, std::size_t r, std::size_t c) HWY_ATTR {
        multiply_int8_tile<type(), of_rows(), of_columns()>(
            {unpacked.integers + r * blocks * 32, unpacked.scales + r * blocks, unpacked.sums + r * blocks},
            blocks, weights + c * row_bytes, row_bytes, layout, y + r * y_step + c, y_step);
      });
    });
    x += some * blocks * 34;
    y += some * y_step;
  }
}
#endif

/// Returns the largest absolute value of a block of 32 elements. Bits of numbers that are not
/// negative have the order of the numbers, and those of NaN are the largest.
float largest_of(const float* x) {
  const D d;
  const Ints ints;
  auto most = hn::Zero(ints);
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d))
    most = hn::Max(hn::BitCast(ints, hn::Abs(hn::LoadU(d, x + i))), most);
  return hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(ints, most)));
}
/// Sets `to` to x times `by`, rounded to integers; halves away from zero.
void round_to_int8(const float* x, float by, std::int8_t* to) {
  const D d;
  const Ints ints;
  const hn::Rebind<std::int8_t, D> bytes;
  for (std::size_t i = 0; i < 32; i += hn::Lanes(d)) {
    const V product = hn::Mul(hn::LoadU(d, x + i), hn::Set(d, by)), whole = hn::Trunc(product);
    const V one = hn::CopySign(hn::Set(d, 1.0f), product);
    const auto up = hn::Ge(hn::Abs(hn::Sub(product, whole)), hn::Set(d, 0.5f));
    const V rounded = hn::Add(whole, hn::IfThenElseZero(up, one));
    hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(ints, rounded)), bytes, to + i);
  }
}
/// Quantizes `count` blocks to q8_0.
void quantize_int8(const float* HWY_RESTRICT x, std::size_t count, std::uint8_t* HWY_RESTRICT to) {
  for (; count != 0; --count, x += 32, to += 34) {
    const float largest = largest_of(x);
    std::uint16_t header = 0x7e00;
    float by = 0;
    if (largest <= std::numeric_limits<float>::max()) {
      const float scale = largest < 0x1p-100f ? 0.0f : largest / 127;
      header = half(scale).bits;
      by = scale == 0 ? 0.0f : 1 / scale;
    }
    std::memcpy(to, &header, sizeof header);
    if (by == 0)
      std::memset(to + 2, 0, 32);
    else
      round_to_int8(x, by, reinterpret_cast<std::int8_t*>(to + 2));
  }
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(widen_blocks);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(multiply_int8);
HWY_EXPORT(quantize_int8);

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

/// Returns the integer of an element; the lowest is 0.
int integer_of(float x, const Rounding& by, BlockType type) {
  const float product = (x - by.from) * by.by;
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

/// Calls `f(first row, rows, first column, columns)` for blocks of at most 256 columns and as many
/// tiles of rows as the range has, up to those of two blocks.
template <class F>
void for_blocks(Range range, const QuantizedProduct& shape, F f) {
  const Range units = units_in(range, shape);
  std::uint64_t tile = units.first / columns_per_block;
  const std::uint64_t last = units.last / columns_per_block;
  while (tile < last) {
    const std::uint64_t of_columns = tile / shape.tiles, tile_row = tile % shape.tiles;
    const std::uint64_t count =
        std::min({last - tile, shape.tiles - tile_row, blocks_at_once * block_side / rows_per_tile});
    const std::uint64_t row = tile_row * rows_per_tile, column = of_columns * columns_per_block;
    if (row < shape.rows && column < shape.columns)
      f(row, std::min<std::uint64_t>(shape.rows - row, count * rows_per_tile), column,
        std::min<std::uint64_t>(shape.columns - column, columns_per_block));
    tile += count;
  }
}

}  // namespace

void quantize(Range range, std::span<const float> x, std::span<std::uint8_t> blocks, BlockLayout layout) {
  const Range items = below(range, x.size() >> layout.group_log2);
  if (static_cast<BlockType>(layout.type) == BlockType::q8_0)
    return HWY_DYNAMIC_DISPATCH(quantize_int8)(x.data() + items.first * 32, items.last - items.first,
                                               blocks.data() + items.first * 34);
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
  for_blocks(range, shape, [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
    HWY_DYNAMIC_DISPATCH(multiply_int8)
    (x.data() + row * bytes, rows, blocks, weights.data() + column * row_bytes, columns, layout,
     y.data() + row * shape.columns + column, shape.columns);
  });
}

void multiply_many_rows(Range range, std::span<const float> x, std::span<const std::uint8_t> weights,
                        std::span<float> y, QuantizedProduct shape, BlockLayout layout) {
  for_blocks(range, shape, [&](std::size_t row, std::size_t rows, std::size_t column, std::size_t columns) {
    multiply_block(row, row + rows, column, column + columns, x.data(), weights.data(), y.data(), shape,
                   layout);
  });
}

}  // namespace wye::workloads::cpu
#endif
