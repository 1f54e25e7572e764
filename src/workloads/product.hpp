#pragma once
/// Matrix products, as kernels and blocks of them.
#include <cstddef>
#include <cstdint>

namespace wye {
inline namespace v0 {
namespace workloads {

/// A kernel parameter, also declared in `shaders/include/matmul.glsl` and `.cuh`. The stretch at 0 sets c,
/// others add to it.
struct Product {
  std::uint32_t rows = 0;  ///< of c
  std::uint32_t columns = 0;
  std::uint32_t inner = 0;
  std::uint32_t first = 0;  ///< the stretch of the inner dimension: [first, last)
  std::uint32_t last = 0;
  std::uint32_t transposed = 0;  ///< whether b is given as columns x inner
  std::uint32_t batch = 1;       ///< matrices
  std::uint32_t unused = 0;
  std::uint64_t a_step = 0;  ///< elements between the beginnings of matrices
  std::uint64_t b_step = 0;
  std::uint64_t c_step = 0;
};
static_assert(sizeof(Product) == 56);

/// Rows and columns of the block that one call on the host computes: 4 x 4 tiles of 64 x 64. A shader's
/// workgroup computes one tile. The bits of a block do not depend on the thread that computes it.
inline constexpr std::uint32_t block_side = 256;
inline constexpr std::uint32_t items_per_block = 16 * 256;

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
  std::size_t a_step = 0;  ///< from row to row
  const T* b = nullptr;
  std::size_t b_step = 0;  ///< from row to row as stored
  bool transposed = false;
  Sum* c = nullptr;
  std::size_t c_step = 0;
  bool add = false;
};
using Block = BlockOf<float, float>;

}  // namespace workloads
}  // namespace v0
}  // namespace wye
