#pragma once
/// Matrix products, as kernels and blocks of them.
#include <wye/workloads/matmul.hpp>

#include <cstddef>
#include <cstdint>

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/product.glsl` and `product.cuh`. The
/// stretch at 0 sets c, others add to it. The last stretch has the epilogue.
struct Product {
  std::uint32_t rows = 0;  ///< of c
  std::uint32_t columns = 0;
  std::uint32_t inner = 0;
  std::uint32_t first = 0;  ///< the stretch of the inner dimension: [first, last)
  std::uint32_t last = 0;
  std::uint32_t transposed_a = 0;  ///< whether a is given as inner x rows
  std::uint32_t transposed_b = 0;  ///< whether b is given as columns x inner
  std::uint32_t batch = 1;         ///< matrices
  Activation activation = Activation::none;
  float scale = 1;
  std::uint64_t a_step = 0;  ///< elements between the beginnings of matrices
  std::uint64_t b_step = 0;
  std::uint64_t c_step = 0;
};
static_assert(sizeof(Product) == 64);

/// Returns the length of a row as stored, and the element of the matrix at which the stretch
/// begins.
constexpr std::uint32_t a_row(const Product& shape) { return shape.transposed_a ? shape.rows : shape.inner; }
constexpr std::uint32_t b_row(const Product& shape) {
  return shape.transposed_b ? shape.inner : shape.columns;
}
constexpr std::uint64_t a_start(const Product& shape) {
  return std::uint64_t{shape.first} * (shape.transposed_a ? shape.rows : 1);
}
constexpr std::uint64_t b_start(const Product& shape) {
  return std::uint64_t{shape.first} * (shape.transposed_b ? 1 : shape.columns);
}

/// Rows and columns of the block that one call on the host computes: 4 x 4 tiles of 64 x 64. A
/// shader's workgroup computes one tile. The bits of a block do not depend on the thread that
/// computes it.
inline constexpr std::uint32_t block_side = 256;
inline constexpr std::uint32_t items_per_block = 16 * 256;
/// The most blocks below each other that the host computes at once.
inline constexpr std::uint64_t blocks_at_once = 2;
/// One call on the host for few rows computes a strip of a block: 64 columns.
inline constexpr std::uint32_t items_per_strip = items_per_block / 4;

/// Returns the number of blocks of all matrices c.
constexpr std::uint64_t blocks_of(const Product& shape) {
  const std::uint64_t side = block_side;
  return (shape.columns + side - 1) / side * ((shape.rows + side - 1) / side) * shape.batch;
}

/// A block of c in c = a b, or c += a b. Steps are in elements.
template <class T, class Sum>
struct BlockOf {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t inner = 0;
  const T* a = nullptr;
  std::size_t a_step = 0;  ///< from row to row as stored
  bool transposed_a = false;
  const T* b = nullptr;
  std::size_t b_step = 0;  ///< from row to row as stored
  bool transposed_b = false;
  Sum* c = nullptr;
  std::size_t c_step = 0;
  bool add = false;
};
using Block = BlockOf<float, float>;

/// The epilogue of a block: c = activation(scale c + bias) + residual.
struct BlockEpilogue {
  std::size_t rows = 0;
  std::size_t columns = 0;
  float* c = nullptr;
  std::size_t c_step = 0;           ///< from row to row
  const float* bias = nullptr;      ///< of a row, or none
  const float* residual = nullptr;  ///< as c, with its step, or none
  float scale = 1;
  Activation activation = Activation::none;
};

}  // namespace wye::workloads
