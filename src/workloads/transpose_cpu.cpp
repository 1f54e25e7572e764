#include "per_target.hpp"

#include <hwy/cache_control.h>

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

/// Bytes of a line of the caches.
constexpr std::size_t line = 64;

/// Writes a column of a tile to a row of y: without reading its lines before, and without keeping them in the caches.
template <class T>
void stream_column(const T (*tile)[transposed_side], std::size_t column, T* y) {
  const hn::ScalableTag<T> d;
  HWY_ALIGN T row[transposed_side];
  for (std::size_t i = 0; i < transposed_side; ++i) row[i] = tile[i][column];
  for (std::size_t i = 0; i < transposed_side; i += hn::Lanes(d)) hn::Stream(hn::Load(d, row + i), d, y + i);
}

/// Transposes a tile through a buffer in the first-level cache: rows of powers of two would share its sets otherwise.
/// `x` and `y` are its first elements. `streams`: whether rows of a whole tile are aligned to lines of y, and y exceeds the caches.
template <class T>
void transpose_tile(const T* x, T* y, std::size_t height, std::size_t width, const Transposition& shape,
                    bool streams) {
  T tile[transposed_side][transposed_side];
  for (std::size_t i = 0; i < height; ++i) std::copy_n(x + i * shape.columns, width, tile[i]);
  if (streams && height == transposed_side) {
    for (std::size_t j = 0; j < width; ++j) stream_column(tile, j, y + j * shape.rows);
    return;
  }
  for (std::size_t j = 0; j < width; ++j) {
    T* const to = y + j * shape.rows;
    for (std::size_t i = 0; i < height; ++i) to[i] = tile[i][j];
  }
}

/// Transposes the blocks of `range`.
template <class T>
void transpose_blocks(Range range, const T* x, T* y, const Transposition& shape) {
  constexpr std::size_t side = transposed_side, block = transposed_block, cached = std::size_t{8} << 20;
  const std::size_t rows = shape.rows, columns = shape.columns;
  const std::size_t across = (columns + block - 1) / block, down = (rows + block - 1) / block;
  const bool streams =
      side * sizeof(T) % line == 0 && rows * sizeof(T) % line == 0 && rows * columns * sizeof(T) > cached;
  // Rows of x before the first aligned place of the rows of y.
  const std::size_t shift = (~reinterpret_cast<std::uintptr_t>(y) + 1) % line / sizeof(T);
  const Range items = below(range, blocks_of(shape) * items_per_transposed_block);
  for (std::uint64_t number = items.first / items_per_transposed_block;
       number < items.last / items_per_transposed_block; ++number) {
    const std::size_t at = number % (across * down), matrix = number / (across * down) * rows * columns;
    const std::size_t first_row = at / across * block, first_column = at % across * block;
    const std::size_t last_row = std::min(first_row + block, rows);
    const std::size_t last_column = std::min(first_column + block, columns);
    for (std::size_t row = first_row, height = 0; row < last_row; row += height) {
      height = std::min(side - (row + side - shift) % side, last_row - row);
      for (std::size_t column = first_column; column < last_column; column += side)
        transpose_tile(x + matrix + row * columns + column, y + matrix + column * rows + row, height,
                       std::min(side, last_column - column), shape, streams);
    }
  }
  if (streams) hwy::FlushStream();
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

/// Transposes elements as integers of their size.
template <class T>
void transpose_any(Range range, std::span<const T> x, std::span<T> y, const Transposition& shape) {
  const auto with = [&]<class Word>(void (*blocks)(Range, const Word*, Word*, const Transposition&)) {
    blocks(range, reinterpret_cast<const Word*>(x.data()), reinterpret_cast<Word*>(y.data()), shape);
  };
  if constexpr (sizeof(T) == 4)
    with(HWY_DYNAMIC_DISPATCH(transpose_words));
  else if constexpr (sizeof(T) == 2)
    with(HWY_DYNAMIC_DISPATCH(transpose_halves));
  else
    with(HWY_DYNAMIC_DISPATCH(transpose_bytes));
}

}  // namespace

void transpose(Range range, std::span<const float> x, std::span<float> y, Transposition shape) {
  transpose_any(range, x, y, shape);
}
void transpose(Range range, std::span<const half> x, std::span<half> y, Transposition shape) {
  transpose_any(range, x, y, shape);
}
void transpose(Range range, std::span<const bfloat16> x, std::span<bfloat16> y, Transposition shape) {
  transpose_any(range, x, y, shape);
}
void transpose(Range range, std::span<const std::int8_t> x, std::span<std::int8_t> y, Transposition shape) {
  transpose_any(range, x, y, shape);
}
void transpose(Range range, std::span<const std::int32_t> x, std::span<std::int32_t> y, Transposition shape) {
  transpose_any(range, x, y, shape);
}
void transpose(Range range, std::span<const std::uint32_t> x, std::span<std::uint32_t> y,
               Transposition shape) {
  transpose_any(range, x, y, shape);
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
