#include "per_target.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpu.hpp"
#include "steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Rows and columns of the tile that is transposed at a time, which the first-level cache holds.
constexpr std::size_t side = 64;
/// The padding of its rows, in bytes. Rows of powers of two would share sets of the cache.
constexpr std::size_t padding = 64;

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
      const std::uint32_t* const from = tile.at + i * step + j;
      const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + step), r2 = hn::LoadU(d, from + 2 * step),
                 r3 = hn::LoadU(d, from + 3 * step);
      const auto even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
      const auto even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
      hn::StoreU(hn::InterleaveLower(d, even_low, odd_low), d, to + i);
      hn::StoreU(hn::InterleaveUpper(d, even_low, odd_low), d, to + y_step + i);
      hn::StoreU(hn::InterleaveLower(d, even_high, odd_high), d, to + 2 * y_step + i);
      hn::StoreU(hn::InterleaveUpper(d, even_high, odd_high), d, to + 3 * y_step + i);
    }
    for (std::size_t k = 0; k < 4; ++k) write_column(tile, j + k, fours, height, to + k * y_step);
  }
  for (; j < width; ++j) write_column(tile, j, 0, height, y + j * y_step);
}
#endif

/// Transposes the blocks of `range`.
template <class T>
void transpose_blocks(Range range, const T* x, T* y, const Transposition& shape) {
  constexpr std::size_t block = transposed_block;
  const std::size_t rows = shape.rows, columns = shape.columns;
  const std::size_t across = (columns + block - 1) / block, down = (rows + block - 1) / block;
  const Range items = below(range, blocks_of(shape) * items_per_transposed_block);
  Tile<T> tile;
  for (std::uint64_t number = items.first / items_per_transposed_block;
       number < items.last / items_per_transposed_block; ++number) {
    const std::size_t at = number % (across * down), matrix = number / (across * down) * rows * columns;
    const std::size_t first_row = at / across * block, first_column = at % across * block;
    const std::size_t last_row = std::min(first_row + block, rows);
    const std::size_t last_column = std::min(first_column + block, columns);
    for (std::size_t row = first_row; row < last_row; row += side)
      for (std::size_t column = first_column; column < last_column; column += side) {
        const std::size_t height = std::min(side, last_row - row),
                          width = std::min(side, last_column - column);
        const T* const from = x + matrix + row * columns + column;
        for (std::size_t i = 0; i < height; ++i)
          std::copy_n(from + i * columns, width, tile.at + i * Tile<T>::step);
        write_columns(tile, height, width, y + matrix + column * rows + row, rows);
      }
  }
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

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
