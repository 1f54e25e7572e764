#pragma once
/// Matrix products, as kernels and blocks of them.
#include <cstddef>
#include <cstdint>

namespace wye {
inline namespace v0 {
namespace workloads {

/// A kernel parameter; `shaders/matmul/matmul.comp` reads it.
struct Product {
  std::uint32_t rows = 0;  ///< of c
  std::uint32_t columns = 0;
  std::uint32_t inner = 0;
  std::uint32_t first = 0;  ///< the stretch of the inner dimension: [first, last)
  std::uint32_t last = 0;
  std::uint32_t transposed = 0;  ///< whether b is given as columns x inner
};

/// Rows and columns that one call on the host makes: 4 x 4 tiles of 64 x 64, of which a shader's workgroup makes one.
/// Blocks are always the same, whoever makes them, and with them the bits of the answer.
inline constexpr std::uint32_t block_side = 256;
inline constexpr std::uint32_t items_per_block = 16 * 256;

/// c = a b, or c += a b, for a block of c. Steps are in elements.
struct Block {
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t inner = 0;
  const float* a = nullptr;
  std::size_t a_step = 0;  ///< from row to row
  const float* b = nullptr;
  std::size_t b_step = 0;  ///< from row to row as it is stored
  bool transposed = false;
  float* c = nullptr;
  std::size_t c_step = 0;
  bool add = false;
};

}  // namespace workloads
}  // namespace v0
}  // namespace wye
