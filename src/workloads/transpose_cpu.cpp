#include <algorithm>
#include <cstddef>

#include "cpu.hpp"
#include "steps.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace {

/// Transposes the tiles of `range` through a buffer in the first-level cache: rows of powers of two would share
/// its sets otherwise.
template <class T>
void transpose_tiles(Range range, const T* x, T* y, const Transposition& shape) {
  constexpr std::size_t side = transposed_side;
  const std::size_t rows = shape.rows, columns = shape.columns;
  const std::size_t across = (columns + side - 1) / side, down = (rows + side - 1) / side;
  const Range items = below(range, tiles_of(shape) * 256);
  T tile[side][side];
  for (std::uint64_t number = items.first / 256; number < items.last / 256; ++number) {
    const std::size_t at = number % (across * down), row = at / across * side, column = at % across * side;
    const std::size_t matrix = number / (across * down) * rows * columns;
    const std::size_t height = std::min(side, rows - row), width = std::min(side, columns - column);
    for (std::size_t i = 0; i < height; ++i)
      std::copy_n(x + matrix + (row + i) * columns + column, width, tile[i]);
    for (std::size_t j = 0; j < width; ++j) {
      T* const to = y + matrix + (column + j) * rows + row;
      for (std::size_t i = 0; i < height; ++i) to[i] = tile[i][j];
    }
  }
}

}  // namespace

void transpose(Range range, std::span<const float> x, std::span<float> y, Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const half> x, std::span<half> y, Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const bfloat16> x, std::span<bfloat16> y, Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::int8_t> x, std::span<std::int8_t> y, Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::int32_t> x, std::span<std::int32_t> y, Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}
void transpose(Range range, std::span<const std::uint32_t> x, std::span<std::uint32_t> y,
               Transposition shape) {
  transpose_tiles(range, x.data(), y.data(), shape);
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
