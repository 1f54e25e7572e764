#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "cublas.hpp"
#include "matmul_kernels.hpp"
#include "recipes.hpp"
#include "square_root.hpp"
#include "variants.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {
namespace {

/// A kernel of one arithmetic, and the same without cuBLAS. CUDA devices use cuBLAS if they can. The probe of the
/// native function opens cuBLAS, so a runtime without CUDA never opens it. Without cuBLAS, autotuning chooses
/// between `text` and `plain`.
template <class T, class C>
class ProductVariants {
 public:
  ProductVariants(const KernelText& text, std::optional<cublas::Arithmetic> arithmetic,
                  const KernelText* plain = nullptr)
      : own_(kernel(text, std::nullopt, plain)),
        with_library_(arithmetic ? kernel(text, arithmetic, nullptr) : own_) {}

  const Result<ProductKernel<T, C>>& now() const { return cublas::known_absent() ? own_ : with_library_; }

 private:
  using Number = typename C::element_type;
  static Result<ProductKernel<T, C>> kernel(const KernelText& text,
                                            std::optional<cublas::Arithmetic> arithmetic,
                                            const KernelText* plain) {
    using Multiply = void (*)(Range, std::span<const T>, std::span<const T>, std::span<Number>, Product);
    std::vector<typename ProductKernel<T, C>::Source> sources{
        host(static_cast<Multiply>(cpu::matmul), {.tile = Extent3(items_per_block)})};
    if (arithmetic)
      sources.push_back(native(
          "cuda",
          [numbers = *arithmetic](const NativeLane& lane, DeviceSpan<const T> a, DeviceSpan<const T> b,
                                  DeviceSpan<Number> c, Product shape) {
            return cublas::multiply(lane, numbers, a.data, b.data, c.data, shape);
          },
          cublas::probe));
    auto made = make_product_kernel<T, C>(text, std::move(sources));
    return plain ? with_plain(std::move(made), make_product_kernel<T, C>(*plain)) : made;
  }

  Result<ProductKernel<T, C>> own_, with_library_;
};

/// The kernels of products of `T`. The first sets c, the second adds to it.
template <class T, class Sum>
struct ProductKernels {
  explicit ProductKernels(const KernelText& text, std::optional<cublas::Arithmetic> arithmetic,
                          const KernelText* plain = nullptr)
      : set(text, arithmetic, plain), add(text, arithmetic, plain) {}

  ProductVariants<T, Write<Sum>> set;
  ProductVariants<T, ReadWrite<Sum>> add;
};

const auto& float_kernels() {
  static const ProductKernels<float, float> kernels(kernels::matmul, cublas::Arithmetic::float32);
  return kernels;
}
/// Without tensor cores for TF32, uses the text for float.
const auto& tf32_kernels() {
  static const ProductKernels<float, float> kernels({.name = "matmul_tf32",
                                                     .glsl = kernels::matmul.glsl,
                                                     .cuda = kernels::matmul_tf32.cuda,
                                                     .ptx = kernels::matmul_tf32.ptx,
                                                     .cubins = kernels::matmul_tf32.cubins},
                                                    cublas::Arithmetic::tf32);
  return kernels;
}
const auto& kernels_of(const Read<half>&) {
  static const ProductKernels<half, float> kernels(kernels::matmul_half, cublas::Arithmetic::float16,
                                                   &kernels::matmul_half_plain);
  return kernels;
}
const auto& kernels_of(const Read<bfloat16>&) {
  static const ProductKernels<bfloat16, float> kernels(kernels::matmul_bfloat16, cublas::Arithmetic::bfloat16,
                                                       &kernels::matmul_bfloat16_plain);
  return kernels;
}
const auto& rounded_kernel_of(const Write<half>&) {
  static const ProductVariants<half, Write<half>> kernel(
      kernels::matmul_half_rounded, cublas::Arithmetic::float16_rounded, &kernels::matmul_half_rounded_plain);
  return kernel.now();
}
const auto& rounded_kernel_of(const Write<bfloat16>&) {
  static const ProductVariants<bfloat16, Write<bfloat16>> kernel(kernels::matmul_bfloat16_rounded,
                                                                 cublas::Arithmetic::bfloat16_rounded,
                                                                 &kernels::matmul_bfloat16_rounded_plain);
  return kernel.now();
}
const auto& int8_kernels() {
  static const ProductKernels<std::int8_t, std::int32_t> kernels(kernels::matmul_int8,
                                                                 cublas::Arithmetic::int8);
  return kernels;
}
const auto& own_int8_kernels() {
  static const ProductKernels<std::int8_t, std::int32_t> kernels(kernels::matmul_int8, std::nullopt);
  return kernels;
}

/// Returns a kernel that rounds to `T`. A workgroup covers 512 elements.
template <class T>
auto narrow_kernel(const KernelText& text) {
  using Narrow = void (*)(Range, std::span<const float>, std::span<T>);
  return make_kernel<Read<float>, Write<T>>(
      text, {"from", "to"}, {.glsl = Extent3(512), .cuda = Extent3(1024)},
      {host(static_cast<Narrow>(cpu::narrow), {.tile = Extent3(65536)})});
}
const auto& narrow_kernel_of(const Write<half>&) {
  static const auto kernel = narrow_kernel<half>(kernels::narrow_half);
  return kernel;
}
const auto& narrow_kernel_of(const Write<bfloat16>&) {
  static const auto kernel = narrow_kernel<bfloat16>(kernels::narrow_bfloat16);
  return kernel;
}

/// Returns a / b if it is an integer.
std::optional<std::uint64_t> quotient(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
}

/// Derives the shape from the sizes: a is rows x inner, b is inner x columns, c is rows x columns, so a c / b
/// is rows squared. Returns nothing if there is no shape or more than one.
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

/// Returns the reason if the sizes or steps are invalid.
std::optional<std::string> no_product(std::uint64_t a, std::uint64_t b, std::uint64_t c, MatmulShape shape,
                                      const MatmulOptions& options) {
  if (const std::uint64_t most = std::max({shape.rows, shape.columns, shape.inner}); most > largest_dimension)
    return "Dimension (" + std::to_string(most) + ") of workload 'matmul' exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  const auto wrong = [&](const char* which, std::uint64_t size, std::uint64_t rows, std::uint64_t columns,
                         const std::optional<std::uint64_t>& step) -> std::optional<std::string> {
    // Dimensions are below 2^31, so products of two are below 2^62.
    const std::uint64_t one = rows * columns;
    const bool steps = step && options.batch > 1;
    std::uint64_t all = 0;
    const bool fits = !__builtin_mul_overflow(options.batch - 1, step.value_or(one), &all) &&
                      !__builtin_add_overflow(all, one, &all) && (steps ? all <= size : all == size);
    if (fits) return std::nullopt;
    const std::string matrix = "Matrix " + std::string(which) + " (" + std::to_string(size) +
                               " elements) of workload 'matmul' is not ";
    if (options.batch == 1) return matrix + dimensions(rows, columns) + ".";
    return matrix + std::to_string(options.batch) + " of " + dimensions(rows, columns) +
           (steps ? ", " + std::to_string(*step) + " apart." : ".");
  };
  if (auto why = wrong("a", a, shape.rows, shape.inner, options.a_step)) return why;
  if (auto why = options.transposed_b ? wrong("b", b, shape.columns, shape.inner, options.b_step)
                                      : wrong("b", b, shape.inner, shape.columns, options.b_step))
    return why;
  const std::uint64_t one = shape.rows * shape.columns;
  if (options.batch > 1 && options.c_step.value_or(one) < one)
    return "Matrices c of workload 'matmul' overlap: their step (" + std::to_string(*options.c_step) +
           ") is below their size (" + std::to_string(one) + ").";
  if (auto why = wrong("c", c, shape.rows, shape.columns, options.c_step)) return why;
  // Shaders number tiles with 32 bits, and grids have 65,535 rows.
  const Product blocks{.rows = static_cast<std::uint32_t>(shape.rows),
                       .columns = static_cast<std::uint32_t>(shape.columns)};
  const std::uint64_t most =
      flat_width * 65535 / items_per_block / std::max<std::uint64_t>(blocks_of(blocks), 1);
  if (one != 0 && options.batch > std::max<std::uint64_t>(most, 1))
    return "Batch (" + std::to_string(options.batch) +
           ") of workload 'matmul' exceeds the limit for products of " +
           dimensions(shape.rows, shape.columns) + " (" + std::to_string(most) + ").";
  return std::nullopt;
}

Extent3 items_of(const Product& shape) { return flat(blocks_of(shape) * items_per_block); }

/// Returns the stretch of the inner dimension of one step. It limits loops, and indexes into a stretch of b to
/// 2^31. cuBLAS requires stretches of bytes to begin at multiples of 4.
std::uint32_t stretch_of(const Product& shape) {
  const std::uint64_t step = shape.transposed ? 1 : std::max<std::uint64_t>(shape.columns, 1);
  const auto stretch = static_cast<std::uint32_t>(std::min<std::uint64_t>(16384, largest_dimension / step));
  return stretch >= 4 ? stretch - stretch % 4 : stretch;
}

/// Adds the steps of products with `kernels`.
template <class T, class Sum>
void add_products(Steps& steps, const ProductKernels<T, Sum>& kernels, const Read<T>& a, const Read<T>& b,
                  const Write<Sum>& c, Product shape) {
  const Extent3 items = items_of(shape);
  const std::uint32_t stretch = stretch_of(shape);
  const bool gaps = shape.batch > 1 && shape.c_step > std::uint64_t{shape.rows} * shape.columns;
  shape.first = 0;
  shape.last = std::min(stretch, shape.inner);
  if (gaps)
    steps.add(kernels.add.now(), items, a, b, Memory(c), shape);
  else
    steps.add(kernels.set.now(), items, a, b, c, shape);
  while (shape.last < shape.inner) {
    shape.first = shape.last;
    shape.last = shape.first + std::min(stretch, shape.inner - shape.first);
    steps.add(kernels.add.now(), items, a, b, Memory(c), shape);
  }
}

Job refused_product(std::string sentence) {
  return refused("matmul", workload_types::matrix, std::move(sentence));
}

/// The product as a kernel parameter, or the reason why it is invalid.
struct Checked {
  Product shape;
  std::optional<std::string> refusal;
};
Checked check(std::uint64_t a, std::uint64_t b, std::uint64_t c, MatmulShape shape,
              const MatmulOptions& options) {
  if (options.batch == 0) return {{}, "Batch (0) of workload 'matmul' is below the minimum (1)."};
  const bool given = shape != MatmulShape{} || a + b + c == 0;
  if (!given && options.batch > 1)
    return {{},
            "Batch (" + std::to_string(options.batch) +
                ") of workload 'matmul' has no shape, which is required above (1)."};
  if (!given) {
    const auto found = shape_of(a, b, c);
    if (!found)
      return {{},
              "Matrices a (" + std::to_string(a) + " elements), b (" + std::to_string(b) +
                  " elements) and c (" + std::to_string(c) +
                  " elements) of workload 'matmul' fit no unique shape, and none is given."};
    shape = *found;
  }
  if (auto why = no_product(a, b, c, shape, options)) return {{}, std::move(why)};
  const bool any = shape.rows * shape.columns != 0;
  return {{.rows = static_cast<std::uint32_t>(shape.rows),
           .columns = static_cast<std::uint32_t>(shape.columns),
           .inner = static_cast<std::uint32_t>(shape.inner),
           .transposed = options.transposed_b,
           .batch = any ? static_cast<std::uint32_t>(options.batch) : 1,
           .a_step = options.a_step.value_or(shape.rows * shape.inner),
           .b_step = options.b_step.value_or(shape.inner * shape.columns),
           .c_step = options.c_step.value_or(shape.rows * shape.columns)},
          std::nullopt};
}

template <class T, class Sum>
Job product(const ProductKernels<T, Sum>& kernels, const Read<T>& a, const Read<T>& b, const Write<Sum>& c,
            const Checked& checked) {
  if (checked.refusal) return refused_product(*checked.refusal);
  Steps steps;
  add_products(steps, kernels, a, b, c, checked.shape);
  return std::move(steps).job("matmul", workload_types::matrix);
}

/// Makes products of 16 bits. One stretch rounds its sums. The sums of several are in separate memory, and are
/// rounded at the end.
template <class T>
Job narrow_product(const Read<T>& a, const Read<T>& b, const Write<T>& c, const Checked& checked) {
  if (checked.refusal) return refused_product(*checked.refusal);
  Product shape = checked.shape;
  const std::uint64_t one = std::uint64_t{shape.rows} * shape.columns;
  if (shape.batch > 1 && shape.c_step != one)
    return refused_product("Matrices c of 16 bits of workload 'matmul' are not contiguous: their step (" +
                           std::to_string(shape.c_step) + ") is not their size (" + std::to_string(one) +
                           ").");
  Steps steps;
  if (shape.inner <= stretch_of(shape)) {
    shape.last = shape.inner;
    steps.add(rounded_kernel_of(c), items_of(shape), a, b, c, shape);
  } else {
    const Scratch<float> sums(c.size());
    add_products<T, float>(steps, kernels_of(a), a, b, sums, shape);
    steps.add(narrow_kernel_of(c), flat(c.size() + 1), sums,
              c);  // in words, plus one if c begins within a word
  }
  return std::move(steps).job("matmul", workload_types::matrix);
}

/// Returns whether cuBLAS accepts the alignment of rows and matrices of bytes: multiples of 4. The rows of c
/// must be multiples, too. NVIDIA documents this for cublasLtMatmul; on sm_120, cublasGemmEx requires it
/// (CTranslate2's issue 1865).
bool lies_for_cublas(const wye::detail::Operand& matrix, std::uint64_t row, std::uint64_t step) {
  const auto begin = matrix.kind == wye::detail::Operand::Kind::host
                         ? static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(matrix.data))
                         : matrix.offset;
  return (begin | row | step) % 4 == 0;
}

}  // namespace

void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape) {
  add_products(steps, float_kernels(), a, b, c, shape);
}

std::string matmul_on_cuda() {
  if (const std::optional<Error> absent = cublas::absence()) return "wye's own kernel: " + absent->sentence();
  const cublas::Probed probed = cublas::probed();
  if (probed.refusals.empty()) return "cuBLAS";
  return (probed.any ? "cuBLAS, or wye's own kernel: " : "wye's own kernel: ") + probed.refusals;
}

Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape) {
  return product(float_kernels(), a, b, c, check(a.size(), b.size(), c.size(), shape, {}));
}
Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape, const MatmulOptions& options) {
  return product(options.tf32 ? tf32_kernels() : float_kernels(), a, b, c,
                 check(a.size(), b.size(), c.size(), shape, options));
}
Job matmul(Read<half> a, Read<half> b, Write<float> c, MatmulShape shape, const MatmulOptions& options) {
  return product(kernels_of(a), a, b, c, check(a.size(), b.size(), c.size(), shape, options));
}
Job matmul(Read<half> a, Read<half> b, Write<half> c, MatmulShape shape, const MatmulOptions& options) {
  return narrow_product(a, b, c, check(a.size(), b.size(), c.size(), shape, options));
}
Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<float> c, MatmulShape shape,
           const MatmulOptions& options) {
  return product(kernels_of(a), a, b, c, check(a.size(), b.size(), c.size(), shape, options));
}
Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<bfloat16> c, MatmulShape shape,
           const MatmulOptions& options) {
  return narrow_product(a, b, c, check(a.size(), b.size(), c.size(), shape, options));
}
Job matmul(Read<std::int8_t> a, Read<std::int8_t> b, Write<std::int32_t> c, MatmulShape shape,
           const MatmulOptions& options) {
  const Checked checked = check(a.size(), b.size(), c.size(), shape, options);
  const Product& lies = checked.shape;
  const bool library = lies_for_cublas(a.operand(), lies.inner, lies.batch > 1 ? lies.a_step : 0) &&
                       lies_for_cublas(b.operand(), lies.transposed ? lies.inner : lies.columns,
                                       lies.batch > 1 ? lies.b_step : 0) &&
                       lies.columns % 4 == 0;
  return product(library ? int8_kernels() : own_int8_kernels(), a, b, c, checked);
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
