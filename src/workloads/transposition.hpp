#pragma once
/// Transposes of matrices, as kernels and on the host.
#include <cstdint>

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/transpose.glsl` and `.cuh`.
struct Transposition {
  std::uint32_t rows = 0;  ///< of x
  std::uint32_t columns = 0;
  std::uint32_t batch = 1;  ///< matrices
};

/// Rows and columns of a block: 8 x 8 tiles of 32 x 32, which a workgroup of 256 items transposes.
/// The host transposes a block at a time.
inline constexpr std::uint32_t transposed_block = 256;
inline constexpr std::uint32_t items_per_transposed_block = 64 * 256;

/// Returns the number of blocks of all matrices.
constexpr std::uint64_t blocks_of(const Transposition& shape) {
  const std::uint64_t side = transposed_block;
  return (shape.columns + side - 1) / side * ((shape.rows + side - 1) / side) * shape.batch;
}

}  // namespace wye::workloads
