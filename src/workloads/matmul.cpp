#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "cublas.hpp"
#include "matmul_kernels.hpp"
#include "recipes.hpp"
#include "square_root.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace {

/// `sources`, and cuBLAS's function where there is cuBLAS: that is then what CUDA takes.
template <class... P, class F>
std::vector<typename Kernel<P...>::Source> with_cublas(F multiply,
                                                       std::vector<typename Kernel<P...>::Source> sources) {
  if (!cublas::absence()) sources.push_back(native("cuda", multiply));
  return sources;
}

/// A block of CUDA's makes 128 x 128 elements of c: four of the tiles that a workgroup of GLSL makes.
constexpr Tiles product_tiles{.cuda = Extent3(1024)};

const auto& write_kernel() {
  static const auto kernel = make_kernel<Read<float>, Read<float>, Write<float>, Product>(
      kernels::matmul, {"a", "b", "c", "shape"}, product_tiles,
      with_cublas<Read<float>, Read<float>, Write<float>, Product>(
          cublas::multiply, {host(cpu::matmul, {.tile = Extent3(items_per_block)})}));
  return kernel;
}

const auto& add_kernel() {
  static const auto kernel = make_kernel<Read<float>, Read<float>, ReadWrite<float>, Product>(
      kernels::matmul_add, {"a", "b", "c", "shape"}, product_tiles,
      with_cublas<Read<float>, Read<float>, ReadWrite<float>, Product>(
          cublas::multiply_add, {host(cpu::matmul_add, {.tile = Extent3(items_per_block)})}));
  return kernel;
}

/// a / b, where that is a whole number.
std::optional<std::uint64_t> quotient(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
}

/// The shape that sizes leave: a is rows x inner, b is inner x columns, c is rows x columns, so a c / b is rows squared.
/// Nothing where there is none, or more than one.
std::optional<MatmulShape> shape_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  const std::uint64_t common = b == 0 ? 1 : std::gcd(a, b);
  const auto rest = quotient(c, b / common);
  std::uint64_t square = 0;
  if (!rest || __builtin_mul_overflow(a / common, *rest, &square)) return std::nullopt;
  const auto rows = square_root(square);
  if (!rows) return std::nullopt;
  const auto columns = quotient(c, *rows), inner = quotient(a, *rows);
  if (!columns || !inner || *columns * *inner != b) return std::nullopt;
  return MatmulShape{*rows, *columns, *inner};
}

std::string dimensions(std::uint64_t rows, std::uint64_t columns) {
  return std::to_string(rows) + " x " + std::to_string(columns);
}

bool is(std::uint64_t size, std::uint64_t rows, std::uint64_t columns) {
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(rows, columns, &product) && product == size;
}

/// Why there is no such product; nothing where there is.
std::optional<std::string> no_product(std::uint64_t a, std::uint64_t b, std::uint64_t c, MatmulShape shape) {
  const auto wrong = [](const char* which, std::uint64_t size, std::uint64_t rows, std::uint64_t columns) {
    return "Matrix " + std::string(which) + " (" + std::to_string(size) +
           " elements) of workload 'matmul' is not " + dimensions(rows, columns) + ".";
  };
  if (const std::uint64_t most = std::max({shape.rows, shape.columns, shape.inner}); most > largest_dimension)
    return "Dimension (" + std::to_string(most) + ") of workload 'matmul' exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  if (!is(a, shape.rows, shape.inner)) return wrong("a", a, shape.rows, shape.inner);
  if (!is(b, shape.inner, shape.columns)) return wrong("b", b, shape.inner, shape.columns);
  if (!is(c, shape.rows, shape.columns)) return wrong("c", c, shape.rows, shape.columns);
  return std::nullopt;
}

}  // namespace

void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape) {
  const std::uint64_t across = (shape.columns + block_side - 1) / block_side;
  const std::uint64_t down = (shape.rows + block_side - 1) / block_side;
  const Extent3 items = flat(across * down * items_per_block);
  // A stretch at a time: loops stay short, and indexes into a stretch of b below 2^31.
  const std::uint64_t step = shape.transposed ? 1 : std::max<std::uint64_t>(shape.columns, 1);
  const auto stretch = static_cast<std::uint32_t>(std::min<std::uint64_t>(16384, largest_dimension / step));
  shape.first = 0;
  shape.last = std::min(stretch, shape.inner);
  steps.add(write_kernel(), items, a, b, c, shape);
  while (shape.last < shape.inner) {
    shape.first = shape.last;
    shape.last = shape.first + std::min(stretch, shape.inner - shape.first);
    steps.add(add_kernel(), items, a, b, Memory(c), shape);
  }
}

std::string matmul_on_cuda() {
  const std::optional<Error> absent = cublas::absence();
  return absent ? "wye's own kernel: " + absent->sentence() : "cuBLAS";
}

Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape) {
  const bool given = shape != MatmulShape{} || a.size() + b.size() + c.size() == 0;
  if (!given) {
    const auto found = shape_of(a.size(), b.size(), c.size());
    if (!found)
      return refused("matmul", workload_types::matrix,
                     "Matrices a (" + std::to_string(a.size()) + " elements), b (" +
                         std::to_string(b.size()) + " elements) and c (" + std::to_string(c.size()) +
                         " elements) of workload 'matmul' fit no shape, and theirs is not given.");
    shape = *found;
  }
  if (auto why = no_product(a.size(), b.size(), c.size(), shape))
    return refused("matmul", workload_types::matrix, *std::move(why));
  Steps steps;
  add_matmul(steps, a, b, c,
             {.rows = static_cast<std::uint32_t>(shape.rows),
              .columns = static_cast<std::uint32_t>(shape.columns),
              .inner = static_cast<std::uint32_t>(shape.inner)});
  return std::move(steps).job("matmul", workload_types::matrix);
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
