#pragma once
/// Transposes of matrices, as kernels and on the host.
#include <cstdint>

namespace wye {
inline namespace v0 {
namespace workloads {

/// A kernel parameter, also declared in `shaders/include/transpose.glsl` and `.cuh`.
struct Transposition {
  std::uint32_t rows = 0;  ///< of x
  std::uint32_t columns = 0;
  std::uint32_t batch = 1;  ///< matrices
};

/// Rows and columns of the tile that a workgroup of 256 items transposes.
inline constexpr std::uint32_t transposed_side = 32;

/// Returns the number of tiles of all matrices. Tiles are numbered row after row, matrix after matrix.
constexpr std::uint64_t tiles_of(const Transposition& shape) {
  const std::uint64_t side = transposed_side;
  return (shape.columns + side - 1) / side * ((shape.rows + side - 1) / side) * shape.batch;
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
