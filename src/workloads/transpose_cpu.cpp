#include "per_target.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "steps.hpp"
#include "transposed_loads.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows and columns of the tile that is transposed at a time, which the first-level cache holds.
constexpr std::size_t side = 64;
/// The padding of its rows, in bytes. Rows of powers of two would share sets of the cache.
constexpr std::size_t padding = 64;

/// From this size on, lines of results are written past the caches, which could not hold them.
/// Otherwise the memory would be read before it is written.
constexpr std::size_t streamed_bytes = std::size_t{32} << 20;

/// A part of a matrix that is copied to one place.
template <class T>
struct Tile {
  static constexpr std::size_t step = side + padding / sizeof(T);
  alignas(64) T at[side * step];
};

/// Writes the first `height` elements of column `j` of a tile to a row of y, from element `i` on.
template <class T>
void write_column(const Tile<T>& tile, std::size_t j, std::size_t i, std::size_t height, T* y) {
  for (; i < height; ++i) y[i] = tile.at[i * Tile<T>::step + j];
}

/// Writes the columns of a tile to rows of y, `y_step` apart.
template <class T>
void write_columns(const Tile<T>& tile, std::size_t height, std::size_t width, T* y, std::size_t y_step) {
  for (std::size_t j = 0; j < width; ++j) write_column(tile, j, 0, height, y + j * y_step);
}

/// Whether transpose_strip exists for a type.
template <class T>
constexpr bool has_strips = false;

#if HWY_TARGET != HWY_SCALAR
/// Writes four columns at a time, four elements of each.
void write_columns(const Tile<std::uint32_t>& tile, std::size_t height, std::size_t width, std::uint32_t* y,
                   std::size_t y_step) {
  const hn::FixedTag<std::uint32_t, 4> d;
  const std::size_t fours = height / 4 * 4, step = Tile<std::uint32_t>::step;
  std::size_t j = 0;
  for (; j + 4 <= width; j += 4) {
    std::uint32_t* const to = y + j * y_step;
    for (std::size_t i = 0; i < fours; i += 4) {
      hn::Vec<decltype(d)> columns[4];
      load_columns(d, tile.at + i * step + j, step, columns);
      for (std::size_t k = 0; k < 4; ++k) hn::StoreU(columns[k], d, to + k * y_step + i);
    }
    for (std::size_t k = 0; k < 4; ++k) write_column(tile, j + k, fours, height, to + k * y_step);
  }
  for (; j < width; ++j) write_column(tile, j, 0, height, y + j * y_step);
}

#if !HWY_HAVE_SCALABLE
using Lanes = hn::CappedTag<std::uint32_t, 16>;

template <>
constexpr bool has_strips<std::uint32_t> = true;

/// Transposes 16 rows of x, `x_step` apart, to whole lines of y, `y_step` apart. Writes these past
/// the caches. A line of x is read by few adjacent loads: other lines of a power of two apart soon
/// take its place.
void transpose_strip(const std::uint32_t* x, std::size_t x_step, std::size_t width, std::uint32_t* y,
                     std::size_t y_step) {
  const Lanes d;
  constexpr std::size_t lanes = hn::MaxLanes(Lanes()), squares = 16 / lanes;
  std::size_t j = 0;
  for (; j + lanes <= width; j += lanes) {
    hn::VFromD<Lanes> columns[squares][lanes];
    for (std::size_t s = 0; s < squares; ++s)
      for (std::size_t k = 0; k < lanes; k += 4)
        load_columns(d, x + s * lanes * x_step + j + k, x_step, columns[s] + k);
    for (std::size_t i = 0; i < lanes; ++i)
      for (std::size_t s = 0; s < squares; ++s)
        hn::Stream(columns[s][i], d, y + (j + i) * y_step + s * lanes);
  }
  for (; j < width; ++j)
    for (std::size_t i = 0; i < 16; ++i) y[j * y_step + i] = x[i * x_step + j];
}
#endif
#endif

/// Returns the number of elements from `y` to the next beginning of a line of the caches.
template <class T>
std::size_t elements_to_line(const T* y) {
  constexpr std::size_t line = 64 / sizeof(T);
  return (line - reinterpret_cast<std::uintptr_t>(y) / sizeof(T) % line) % line;
}

/// Transposes the blocks of `range`.
template <class T>
void transpose_blocks(Range range, const T* x, T* y, const Transposition& shape) {
  constexpr std::size_t block = transposed_block;
  const std::size_t rows = shape.rows, columns = shape.columns;
  const std::size_t across = (columns + block - 1) / block, down = (rows + block - 1) / block;
  const Range items = below(range, blocks_of(shape) * items_per_transposed_block);
  // Rows of y begin at the same place of a line.
  const bool past_caches =
      has_strips<T> && rows % 16 == 0 && rows * columns * shape.batch >= streamed_bytes / sizeof(T);
  // Inner blocks begin at lines of x and y. Otherwise, these would be read and written in parts.
  const std::size_t before_row = past_caches ? elements_to_line(y) : 0;
  const std::size_t before_column = past_caches && columns % 16 == 0 ? elements_to_line(x) : 0;
  const auto begin_of = [](std::size_t number, std::size_t before, std::size_t end) {
    return number == 0 ? 0 : std::min(number * block + before, end);
  };
  Tile<T> tile;
  for (std::uint64_t number = items.first / items_per_transposed_block;
       number < items.last / items_per_transposed_block; ++number) {
    const std::size_t at = number % (across * down), matrix = number / (across * down) * rows * columns;
    const std::size_t first_row = begin_of(at / across, before_row, rows);
    const std::size_t last_row = begin_of(at / across + 1, before_row, rows);
    const std::size_t first_column = begin_of(at % across, before_column, columns);
    const std::size_t last_column = begin_of(at % across + 1, before_column, columns);
    if (first_column == last_column) continue;
    for (std::size_t row = first_row, height = 0; row < last_row; row += height) {
      height = std::min(side, last_row - row);
      if (past_caches) {
        T* const to = y + matrix + first_column * rows + row;
        const std::size_t before = elements_to_line(to);
        height = std::min(before == 0 ? 16 : before, height);
        if constexpr (has_strips<T>)
          if (height == 16) {
            transpose_strip(x + matrix + row * columns + first_column, columns, last_column - first_column,
                            to, rows);
            continue;
          }
      }
      for (std::size_t column = first_column; column < last_column; column += side) {
        const std::size_t width = std::min(side, last_column - column);
        const T* const from = x + matrix + row * columns + column;
        for (std::size_t i = 0; i < height; ++i)
          std::copy_n(from + i * columns, width, tile.at + i * Tile<T>::step);
        write_columns(tile, height, width, y + matrix + column * rows + row, rows);
      }
    }
  }
  if (past_caches) hwy::FlushStream();
}

void transpose_words(Range range, const std::uint32_t* x, std::uint32_t* y, const Transposition& shape) {
  transpose_blocks(range, x, y, shape);
}
void transpose_halves(Range range, const std::uint16_t* x, std::uint16_t* y, const Transposition& shape) {
  transpose_blocks(range, x, y, shape);
}
void transpose_bytes(Range range, const std::uint8_t* x, std::uint8_t* y, const Transposition& shape) {
  transpose_blocks(range, x, y, shape);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(transpose_words);
HWY_EXPORT(transpose_halves);
HWY_EXPORT(transpose_bytes);

/// Calls `blocks`, which transposes integers of the size of the elements.
template <class T, class Word>
void transpose_as(void (*blocks)(Range, const Word*, Word*, const Transposition&), Range range,
                  std::span<const T> x, std::span<T> y, const Transposition& shape) {
  blocks(range, reinterpret_cast<const Word*>(x.data()), reinterpret_cast<Word*>(y.data()), shape);
}

}  // namespace

void transpose(Range range, std::span<const float> x, std::span<float> y, Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_words), range, x, y, shape);
}
void transpose(Range range, std::span<const half> x, std::span<half> y, Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_halves), range, x, y, shape);
}
void transpose(Range range, std::span<const bfloat16> x, std::span<bfloat16> y, Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_halves), range, x, y, shape);
}
void transpose(Range range, std::span<const std::int8_t> x, std::span<std::int8_t> y, Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_bytes), range, x, y, shape);
}
void transpose(Range range, std::span<const std::int32_t> x, std::span<std::int32_t> y, Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_words), range, x, y, shape);
}
void transpose(Range range, std::span<const std::uint32_t> x, std::span<std::uint32_t> y,
               Transposition shape) {
  transpose_as(HWY_DYNAMIC_DISPATCH(transpose_words), range, x, y, shape);
}

}  // namespace wye::workloads::cpu
#endif
