#pragma once
/// The distribution of the rows of a matrix over tiles, for sort and top_k, and the order of
/// elements.
#include <wye/base/half.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "steps.hpp"

namespace wye::inline v0::workloads {

/// The elements that one workgroup of 256 sorts: whole rows, or a part of a longer row.
inline constexpr std::uint32_t sorted_tile = 2048;

/// The number of tiles whose counts one item adds up.
inline constexpr std::uint32_t few_tiles = 64;

/// A kernel parameter, also declared in `shaders/include/sort.glsl` and `.cuh`.
struct SortShape {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t tiles = 1;          ///< of one row
  std::uint32_t rows_per_tile = 1;  ///< above 1 only if rows have one tile
  std::uint32_t keep = 0;           ///< the first elements of each sorted row that are written
  std::uint32_t infinity = 0;  ///< the bits of infinity, as in the upper half of a word; 0: keys are integers
  std::uint32_t flip = 0;      ///< inverts keys, or the signs of integers
  std::uint32_t bits = 0;      ///< of a key
  std::uint32_t shift = 0;     ///< of the digit of 8 bits that distributes the elements of longer rows

  std::uint64_t all_tiles() const {
    return tiles > 1 ? std::uint64_t{rows} * tiles
                     : (std::uint64_t{rows} + rows_per_tile - 1) / rows_per_tile;
  }
  Extent3 items() const { return flat(columns == 0 ? 0 : 256 * all_tiles()); }
  /// Of each row, 256 items add up the counts of its tiles if they are few. Otherwise, a workgroup
  /// adds up those of a digit.
  std::uint64_t scan_items_of_row() const { return tiles <= few_tiles ? 256 : 256 * 256; }
};

/// The bits of infinity, and 0 for integers.
template <class T>
inline constexpr std::uint32_t infinity_of = std::is_integral_v<T>     ? 0u
                                             : std::is_same_v<T, half> ? 0x7c00'0000u
                                                                       : 0x7f80'0000u;

/// The sign bit of integers is inverted, so that their keys have the order of unsigned integers.
/// Inverted keys have the opposite order.
template <class T>
constexpr std::uint32_t key_flip(bool descending) {
  const std::uint32_t sign = std::is_same_v<T, std::int32_t> ? 0x8000'0000u : 0u;
  return descending ? ~sign : sign;
}

/// Distributes valid rows, of which the first `keep` elements are written.
template <class T>
SortShape sort_shape(std::uint32_t rows, std::uint32_t columns, std::uint32_t keep, bool descending) {
  SortShape shape{.rows = rows,
                  .columns = columns,
                  .keep = keep,
                  .infinity = infinity_of<T>,
                  .flip = key_flip<T>(descending),
                  .bits = 8 * sizeof(T)};
  if (columns > sorted_tile)
    shape.tiles = (columns - 1) / sorted_tile + 1;
  else if (columns != 0)
    shape.rows_per_tile = sorted_tile / columns;
  return shape;
}

template <class T>
using KeyOf = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

/// Returns the inversion of keys as wide as they are.
template <class T>
constexpr KeyOf<T> wide_flip(std::uint32_t flip) {
  return static_cast<KeyOf<T>>(std::int64_t{static_cast<std::int32_t>(flip)});
}

/// Returns a number that has the order of the elements. All NaN have the largest number, and both
/// zeros the same one. The number of 16 bits is in the upper half.
template <class T>
KeyOf<T> key_of(T element, std::uint32_t flip) {
  if constexpr (sizeof(T) == 8) {
    return element ^ wide_flip<T>(flip);
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint32_t>(element) ^ flip;
  } else {
    std::uint32_t all = 0;
    if constexpr (sizeof(T) == 2)
      all = std::uint32_t{std::bit_cast<std::uint16_t>(element)} << 16;
    else
      all = std::bit_cast<std::uint32_t>(element);
    const std::uint32_t size = all & 0x7fff'ffffu, zero = 0x8000'0000u;
    const std::uint32_t key = size > infinity_of<T> ? ~0u : all > size ? zero - size : zero + size;
    return key ^ flip;
  }
}

/// Tiles of one row, from a range of items of a kernel.
struct RowTiles {
  std::uint64_t row;
  std::uint64_t first, last;  ///< of the tiles of the row
};

/// Calls `f(RowTiles)` for each row of which the range has tiles. Rows have several tiles.
template <class F>
void for_row_tiles(Range range, const SortShape& shape, F f) {
  const Range items = below(range, 256 * shape.all_tiles());
  for (std::uint64_t tile = items.first / 256; tile < items.last / 256;) {
    const std::uint64_t row = tile / shape.tiles;
    const std::uint64_t last = std::min<std::uint64_t>(items.last / 256, (row + 1) * shape.tiles);
    f(RowTiles{row, tile - row * shape.tiles, last - row * shape.tiles});
    tile = last;
  }
}

/// Calls `f(row)` for each row of the tiles of a range. Tiles have whole rows.
template <class F>
void for_rows(Range range, const SortShape& shape, F f) {
  const std::uint64_t step = shape.rows_per_tile;
  const Range items = below(range, 256 * shape.all_tiles());
  for (std::uint64_t row = items.first / 256 * step;
       row < std::min<std::uint64_t>(shape.rows, items.last / 256 * step); ++row)
    f(row);
}

}  // namespace wye::workloads
