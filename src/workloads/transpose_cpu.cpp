#include <hwy/cache_control.h>

#include <algorithm>
#include <cstddef>

#include "cpu.hpp"
#include "steps.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace {

/// Transposes a tile through a buffer in the first-level cache: rows of powers of two would share its sets otherwise.
/// `x` and `y` are its first elements.
template <class T>
void transpose_tile(const T* x, T* y, std::size_t height, std::size_t width, const Transposition& shape) {
  constexpr std::size_t line = 64 / sizeof(T);
  T tile[transposed_side][transposed_side];
  // Stores to other pages would wait for each of their lines.
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t i = 0; i < height; i += line) hwy::Prefetch(y + j * shape.rows + i);
  for (std::size_t i = 0; i < height; ++i) std::copy_n(x + i * shape.columns, width, tile[i]);
  for (std::size_t j = 0; j < width; ++j) {
    T* const to = y + j * shape.rows;
    for (std::size_t i = 0; i < height; ++i) to[i] = tile[i][j];
  }
}

/// Transposes the blocks of `range`.
template <class T>
void transpose_blocks(Range range, const T* x, T* y, const Transposition& shape) {
  constexpr std::size_t side = transposed_side, block = transposed_block;
  const std::size_t rows = shape.rows, columns = shape.columns;
  const std::size_t across = (columns + block - 1) / block, down = (rows + block - 1) / block;
  const Range items = below(range, blocks_of(shape) * items_per_transposed_block);
  for (std::uint64_t number = items.first / items_per_transposed_block;
       number < items.last / items_per_transposed_block; ++number) {
    const std::size_t at = number % (across * down), matrix = number / (across * down) * rows * columns;
    const std::size_t first_row = at / across * block, first_column = at % across * block;
    const std::size_t last_row = std::min(first_row + block, rows);
    const std::size_t last_column = std::min(first_column + block, columns);
    for (std::size_t row = first_row; row < last_row; row += side)
      for (std::size_t column = first_column; column < last_column; column += side)
        transpose_tile(x + matrix + row * columns + column, y + matrix + column * rows + row,
                       std::min(side, last_row - row), std::min(side, last_column - column), shape);
  }
}

}  // namespace

void transpose(Range range, std::span<const float> x, std::span<float> y, Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const half> x, std::span<half> y, Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const bfloat16> x, std::span<bfloat16> y, Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::int8_t> x, std::span<std::int8_t> y, Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::int32_t> x, std::span<std::int32_t> y, Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::uint32_t> x, std::span<std::uint32_t> y,
               Transposition shape) {
  transpose_blocks(range, x.data(), y.data(), shape);
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
