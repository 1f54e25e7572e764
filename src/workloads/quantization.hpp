#pragma once
/// Blocks of quantized elements as kernels see them.
#include <wye/workloads/quantized.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/quantized.glsl` and `.cuh`.
struct BlockLayout {
  std::uint32_t type = 0;        ///< a `BlockType`
  std::uint32_t group_log2 = 5;  ///< a block has 2^group_log2 elements
  std::uint32_t bits = 4;        ///< of an integer
  std::uint32_t header = 2;      ///< bytes before the integers

  constexpr std::size_t group() const { return std::size_t{1} << group_log2; }
  constexpr std::size_t bytes() const { return header + group() * bits / 8; }
  /// Returns the size of the blocks of so many elements.
  constexpr std::size_t bytes_of(std::size_t elements) const { return (elements >> group_log2) * bytes(); }
};

/// Lays out blocks of a valid quantization.
constexpr BlockLayout layout_of(Quantization q) {
  return {.type = static_cast<std::uint32_t>(q.type),
          .group_log2 = q.group == 128  ? 7u
                        : q.group == 64 ? 6u
                                        : 5u,
          .bits = q.type == BlockType::q8_0 || q.type == BlockType::int8 ? 8u : 4u,
          .header = q.type == BlockType::q4_0 || q.type == BlockType::q8_0 ? 2u : 4u};
}

/// A kernel parameter. The work is in units: 4 rows of x times one row of weights. Units are
/// numbered in blocks of 256 columns, in which each tile of 4 rows has 256 units; columns beyond
/// the last have none.
struct QuantizedProduct {
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  std::uint32_t inner = 0;
  std::uint32_t tiles = 0;  ///< of 4 rows
};
inline constexpr std::uint32_t rows_per_tile = 4, columns_per_block = 256, lanes_per_unit = 32;
/// Products of more rows convert weights to floats for many rows at a time.
inline constexpr std::uint32_t most_few_rows = 8;

constexpr std::uint64_t units_of(const QuantizedProduct& shape) {
  return (std::uint64_t{shape.columns} + columns_per_block - 1) / columns_per_block * columns_per_block *
         shape.tiles;
}

}  // namespace wye::workloads
