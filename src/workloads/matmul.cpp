#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpu.hpp"
#include "cublas.hpp"
#include "matmul_kernels.hpp"
#include "recipes.hpp"
#include "square_root.hpp"
#include "variants.hpp"

namespace wye::inline v0::workloads {
namespace {

/// The matrices of products of `T`, and the numbers of `R` that an epilogue adds.
template <class T, class R>
struct Operands {
  Read<T> a;
  Read<T> b;
  Read<R> bias = std::span<const R>();
  Read<R> residual = std::span<const R>();
  bool libraries = true;  ///< whether a vendor's library may multiply
};

/// A function of cuBLAS or cuBLASLt.
struct VendorFunction {
  Result<void> (*multiply)(const NativeLane&, cublas::Arithmetic, const cublas::Matrices&, const Product&);
  NativeProbe probe;
  cublas::Arithmetic arithmetic;
};

/// Makes the host source of a kernel, with the fewest items of a call.
template <class T, class C>
typename ProductKernel<T, C>::Source host_source(std::uint32_t items) {
  using R = typename C::element_type;
  using Spans = std::span<const T>;
  const auto made = [items](auto* function) { return host(function, {.tile = Extent3(items)}); };
  if constexpr (std::is_integral_v<R>)
    return made(static_cast<void (*)(Range, Spans, Spans, std::span<R>, Product)>(cpu::matmul));
  else if constexpr (std::is_same_v<T, R> && sizeof(T) == 2)
    return made(&cpu::matmul_rounded<T>);
  else
    return made(&cpu::matmul<T>);
}

/// Returns the address of numbers; null if there are none.
template <class T>
const void* address(DeviceSpan<const T> span) {
  return span.size != 0 ? span.data : nullptr;
}

/// Makes the source of a kernel that calls a vendor's function on CUDA.
template <class T, class C>
typename ProductKernel<T, C>::Source vendor_source(VendorFunction function) {
  using R = typename C::element_type;
  using Span = DeviceSpan<const T>;
  using Extra = DeviceSpan<const R>;
  if constexpr (std::is_integral_v<R>)
    return native(
        "cuda",
        [function](const NativeLane& lane, Span a, Span b, DeviceSpan<R> c, Product shape) {
          return function.multiply(lane, function.arithmetic, {a.data, b.data, nullptr, nullptr, c.data},
                                   shape);
        },
        function.probe);
  else if constexpr (std::is_same_v<T, R> && sizeof(T) == 2)
    return native(
        "cuda",
        [function](const NativeLane& lane, Span a, Span b, Extra bias, Extra residual,
                   DeviceSpan<const float>, DeviceSpan<R> c, Product shape) {
          return function.multiply(lane, function.arithmetic,
                                   {a.data, b.data, address(bias), address(residual), c.data}, shape);
        },
        function.probe);
  else
    return native(
        "cuda",
        [function](const NativeLane& lane, Span a, Span b, Extra bias, Extra residual, DeviceSpan<R> c,
                   Product shape) {
          return function.multiply(lane, function.arithmetic,
                                   {a.data, b.data, address(bias), address(residual), c.data}, shape);
        },
        function.probe);
}

/// The code that multiplies on CUDA if it can be used.
enum class Vendor : std::uint8_t { none, cublas, cublaslt };

/// The texts of products: `standard` for all devices, `tiled` for GPUs by GLSL, `plain` for CUDA
/// without tensor cores, `cooperative` for GPUs with matrix units by GLSL.
struct ProductTexts {
  const KernelText& standard;
  const KernelText& tiled;
  const KernelText* plain = nullptr;
  const KernelText* cooperative = nullptr;
};

/// A kernel of one arithmetic: of wye alone, and the same with each function of a vendor. The probe
/// of a function opens its library, so a runtime without CUDA never opens it. On CUDA without a
/// library, autotuning chooses between `standard` and `plain`; on GPUs that take GLSL, between
/// `cooperative`, `tiled` and `standard`.
template <class T, class C>
class ProductVariants {
 public:
  ProductVariants(const ProductTexts& texts, cublas::Arithmetic arithmetic)
      : own_(with(texts.standard, std::nullopt)),
        own_for_few_rows_(with(texts.standard, std::nullopt, items_per_strip)),
        with_cublas_(with(texts.standard, VendorFunction{cublas::multiply, cublas::probe, arithmetic})),
        with_cublaslt_(
            with(texts.standard, VendorFunction{cublaslt::multiply, cublaslt::probe, arithmetic})) {
    for (Result<ProductKernel<T, C>>* kernel : {&own_, &own_for_few_rows_})
      if (texts.plain) *kernel = with_variant(std::move(*kernel), make_product_kernel<T, C>(*texts.plain));
    // Without measurements, devices use the first variant that names their type of adapter.
    std::vector<Result<ProductKernel<T, C>>> for_gpus;
    if (texts.cooperative) for_gpus.push_back(make_cooperative_kernel<T, C>(*texts.cooperative));
    for_gpus.push_back(make_product_kernel<T, C>(texts.tiled, {}, tiled_adapters()));
    for (Result<ProductKernel<T, C>>* kernel : {&own_, &own_for_few_rows_, &with_cublas_, &with_cublaslt_})
      for (const Result<ProductKernel<T, C>>& variant : for_gpus)
        *kernel = with_variant(std::move(*kernel), variant);
  }

  const Result<ProductKernel<T, C>>& of(Vendor vendor, const Product& shape) const {
    if (vendor == Vendor::cublas && !cublas::known_absent()) return with_cublas_;
    if (vendor == Vendor::cublaslt && !cublaslt::known_absent()) return with_cublaslt_;
    return shape.rows <= few_rows ? own_for_few_rows_ : own_;
  }

 private:
  /// Products of more rows have enough blocks for all threads.
  static constexpr std::uint32_t few_rows = 64;

  static Result<ProductKernel<T, C>> with(const KernelText& text, std::optional<VendorFunction> function,
                                          std::uint32_t items = items_per_block) {
    std::vector<typename ProductKernel<T, C>::Source> sources{host_source<T, C>(items)};
    if (function) sources.push_back(vendor_source<T, C>(*function));
    return make_product_kernel<T, C>(text, std::move(sources));
  }

  Result<ProductKernel<T, C>> own_, own_for_few_rows_, with_cublas_, with_cublaslt_;
};

/// The kernels of products of `T`. The first sets c, the second adds to it.
template <class T, class Sum>
struct ProductKernels {
  ProductKernels(const ProductTexts& texts, cublas::Arithmetic arithmetic)
      : set(texts, arithmetic), add(texts, arithmetic) {}

  ProductVariants<T, Write<Sum>> set;
  ProductVariants<T, ReadWrite<Sum>> add;
};

const auto& float_kernels() {
  static const ProductKernels<float, float> kernels({kernels::matmul, kernels::matmul_tiled},
                                                    cublas::Arithmetic::float32);
  return kernels;
}
/// Without tensor cores for TF32, uses the texts for float.
const auto& tf32_kernels() {
  static constexpr KernelText text{.name = "matmul_tf32",
                                   .glsl = kernels::matmul.glsl,
                                   .cuda = kernels::matmul_tf32.cuda,
                                   .ptx = kernels::matmul_tf32.ptx,
                                   .cubins = kernels::matmul_tf32.cubins};
  static const ProductKernels<float, float> kernels({text, kernels::matmul_tiled}, cublas::Arithmetic::tf32);
  return kernels;
}
const auto& kernels_of(const Read<half>&) {
  static const ProductKernels<half, float> kernels(
      {kernels::matmul_half, kernels::matmul_half_tiled, &kernels::matmul_half_plain,
       &kernels::matmul_half_cooperative},
      cublas::Arithmetic::float16);
  return kernels;
}
const auto& kernels_of(const Read<bfloat16>&) {
  static const ProductKernels<bfloat16, float> kernels(
      {kernels::matmul_bfloat16, kernels::matmul_bfloat16_tiled, &kernels::matmul_bfloat16_plain},
      cublas::Arithmetic::bfloat16);
  return kernels;
}
const auto& rounded_kernels_of(const Read<half>&) {
  static const ProductVariants<half, Write<half>> kernels(
      {kernels::matmul_half_rounded, kernels::matmul_half_rounded_tiled, &kernels::matmul_half_rounded_plain,
       &kernels::matmul_half_rounded_cooperative},
      cublas::Arithmetic::float16_rounded);
  return kernels;
}
const auto& rounded_kernels_of(const Read<bfloat16>&) {
  static const ProductVariants<bfloat16, Write<bfloat16>> kernels(
      {kernels::matmul_bfloat16_rounded, kernels::matmul_bfloat16_rounded_tiled,
       &kernels::matmul_bfloat16_rounded_plain},
      cublas::Arithmetic::bfloat16_rounded);
  return kernels;
}
const auto& int8_kernels() {
  static const ProductKernels<std::int8_t, std::int32_t> kernels(
      {kernels::matmul_int8, kernels::matmul_int8_tiled}, cublas::Arithmetic::int8);
  return kernels;
}

/// Returns a / b if it is an integer.
std::optional<std::uint64_t> quotient(std::uint64_t a, std::uint64_t b) {
  return b != 0 && a % b == 0 ? std::optional(a / b) : std::nullopt;
}

/// Derives the shape from the sizes: a is rows x inner, b is inner x columns, c is rows x columns,
/// so a c / b is rows squared. Returns nothing if there is no shape or more than one.
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
  if (auto why = options.transposed_a ? wrong("a", a, shape.inner, shape.rows, options.a_step)
                                      : wrong("a", a, shape.rows, shape.inner, options.a_step))
    return why;
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

/// Returns the stretch of the inner dimension of one step. It limits loops, and indexes into
/// stretches of a and b to 2^31. cuBLAS requires stretches of bytes to begin at multiples of 4.
std::uint32_t stretch_of(const Product& shape) {
  const std::uint64_t step =
      std::max({1u, shape.transposed_a ? shape.rows : 1, shape.transposed_b ? 1 : shape.columns});
  const auto stretch = static_cast<std::uint32_t>(std::min<std::uint64_t>(32768, largest_dimension / step));
  return stretch >= 4 ? stretch - stretch % 4 : stretch;
}

/// Returns whether the product is changed.
template <class T, class R>
bool has_epilogue(const Operands<T, R>& operands, const Product& shape) {
  return shape.scale != 1 || shape.activation != Activation::none || operands.bias.size() != 0 ||
         operands.residual.size() != 0;
}

/// Returns whether rows of `row` elements that are `step` from matrix to matrix begin at multiples
/// of `bytes`.
template <class P>
bool is_aligned(const P& matrix, std::uint64_t row, std::uint64_t step, std::uint64_t bytes) {
  return begins_at(matrix, bytes) && (row | step) * sizeof(typename P::element_type) % bytes == 0;
}

/// Returns the library that can compute the stretch. cuBLAS computes products of integers if rows
/// begin at multiples of 4 bytes, c's too: NVIDIA documents this for cublasLtMatmul, and on sm_120,
/// cublasGemmEx requires it (CTranslate2's issue 1865). cuBLASLt has algorithms for all products
/// whose rows begin at multiples of 16 bytes.
template <class T, class R, class C>
Vendor vendor_of(const Operands<T, R>& operands, const C& c, const Product& shape) {
  if (!operands.libraries) return Vendor::none;
  const bool ends = shape.last == shape.inner && has_epilogue(operands, shape);
  const auto aligned = [&](std::uint64_t bytes) {
    const auto step = [&](std::uint64_t elements) { return shape.batch > 1 ? elements : 0; };
    return is_aligned(operands.a, a_row(shape), step(shape.a_step), bytes) &&
           is_aligned(operands.b, b_row(shape), step(shape.b_step), bytes) &&
           is_aligned(c, shape.columns, step(shape.c_step), bytes) &&
           is_aligned(operands.bias, 0, 0, bytes) && is_aligned(operands.residual, 0, 0, bytes);
  };
  if (std::is_integral_v<T> && (!aligned(4) || shape.columns % 4 != 0)) return Vendor::none;
  const bool adds_before = shape.first != 0 && sizeof(R) == 2;
  if (!ends) return adds_before ? Vendor::none : Vendor::cublas;
  const bool computes = shape.activation == Activation::none || shape.activation == Activation::relu ||
                        shape.activation == Activation::gelu_tanh;
  const bool adds_after =
      operands.residual.size() != 0 && (shape.activation != Activation::none || shape.first != 0);
  return computes && !adds_after && !adds_before && shape.last > shape.first && aligned(16) ? Vendor::cublaslt
                                                                                            : Vendor::none;
}

/// Continues with the next stretch.
void advance(Product& shape) {
  shape.first = shape.last;
  shape.last += std::min(stretch_of(shape), shape.inner - shape.last);
}

/// Adds the step of a stretch.
template <class T, class Sum>
void add_stretch(Steps& steps, const ProductKernels<T, Sum>& kernels, const Operands<T, Sum>& operands,
                 const Write<Sum>& c, const Product& shape) {
  const auto add = [&](const auto& variants, const auto& to) {
    const auto& kernel = variants.of(vendor_of(operands, c, shape), shape);
    if constexpr (std::is_integral_v<Sum>)
      steps.add(kernel, items_of(shape), operands.a, operands.b, to, shape);
    else
      steps.add(kernel, items_of(shape), operands.a, operands.b, operands.bias, operands.residual, to, shape);
  };
  const bool gaps = shape.batch > 1 && shape.c_step > std::uint64_t{shape.rows} * shape.columns;
  if (shape.first == 0 && !gaps)
    add(kernels.set, c);
  else
    add(kernels.add, Memory(c));
}

/// Adds the steps of all stretches.
template <class T, class Sum>
void add_products(Steps& steps, const ProductKernels<T, Sum>& kernels, const Operands<T, Sum>& operands,
                  const Write<Sum>& c, Product shape) {
  do {
    advance(shape);
    add_stretch(steps, kernels, operands, c, shape);
  } while (shape.last < shape.inner);
}

Job refused_product(std::string sentence) {
  return refused("matmul", workload_types::matrix, std::move(sentence));
}

/// The product as a kernel parameter, or the reason why it is invalid.
struct Checked {
  Product shape;
  std::optional<std::string> refusal;
};
Checked check_sizes(std::uint64_t a, std::uint64_t b, std::uint64_t c, MatmulShape shape,
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
           .transposed_a = options.transposed_a,
           .transposed_b = options.transposed_b,
           .batch = any ? static_cast<std::uint32_t>(options.batch) : 1,
           .a_step = options.a_step.value_or(shape.rows * shape.inner),
           .b_step = options.b_step.value_or(shape.inner * shape.columns),
           .c_step = options.c_step.value_or(shape.rows * shape.columns)},
          std::nullopt};
}

/// The same with an epilogue, whose scalars become part of the shape.
template <class T, class R>
Checked check(const MatmulGroup<T, R>& group) {
  const auto& [a, b, c, shape, options, epilogue] = group;
  Checked checked = check_sizes(a.size(), b.size(), c.size(), shape, options);
  if constexpr (!std::is_integral_v<R>) {
    if (checked.refusal) return checked;
    const auto wrong = [](const char* name, std::uint64_t size, std::uint64_t expected, const char* of) {
      return std::string(name) + " (" + std::to_string(size) +
             " elements) of workload 'matmul' does not have " + of + " (" + std::to_string(expected) + ").";
    };
    const auto activation = static_cast<std::uint32_t>(epilogue.activation);
    constexpr auto last = static_cast<std::uint32_t>(Activation::silu);
    if (activation > last)
      checked.refusal = "Activation (" + std::to_string(activation) +
                        ") of workload 'matmul' is above the last (" + std::to_string(last) + ").";
    else if (epilogue.bias && epilogue.bias->size() != checked.shape.columns)
      checked.refusal = wrong("Bias", epilogue.bias->size(), checked.shape.columns, "the columns of c");
    else if (epilogue.residual && epilogue.residual->size() != c.size())
      checked.refusal = wrong("Residual", epilogue.residual->size(), c.size(), "the elements of c");
    checked.shape.activation = epilogue.activation;
    checked.shape.scale = epilogue.scale;
  }
  return checked;
}

template <class T, class R>
Operands<T, R> operands_of(const MatmulGroup<T, R>& group, bool libraries) {
  Operands<T, R> operands{group.a, group.b};
  operands.libraries = libraries;
  if constexpr (!std::is_integral_v<R>) {
    if (group.epilogue.bias) operands.bias = *group.epilogue.bias;
    if (group.epilogue.residual) operands.residual = *group.epilogue.residual;
  }
  return operands;
}

/// Adds the steps of a product, or returns the reason if its arguments are invalid.
template <class T, class Sum>
std::optional<std::string> add_product(Steps& steps, const ProductKernels<T, Sum>& kernels,
                                       const MatmulGroup<T, Sum>& group, bool libraries = true) {
  Checked checked = check(group);
  if (!checked.refusal) add_products(steps, kernels, operands_of(group, libraries), group.c, checked.shape);
  return std::move(checked.refusal);
}

/// The same for a c of 16 bits. The sums of stretches before the last are in separate memory. The
/// last one rounds.
template <class T>
std::optional<std::string> add_rounded_product(Steps& steps, const MatmulGroup<T, T>& group,
                                               bool libraries = true) {
  const Checked checked = check(group);
  if (checked.refusal) return checked.refusal;
  Product shape = checked.shape;
  const std::uint64_t one = std::uint64_t{shape.rows} * shape.columns;
  if (shape.batch > 1 && shape.c_step != one)
    return "Matrices c of 16 bits of workload 'matmul' are not contiguous: their step (" +
           std::to_string(shape.c_step) + ") is not their size (" + std::to_string(one) + ").";
  const Operands<T, T> operands = operands_of(group, libraries);
  const auto round = [&](const Read<float>& sums) {
    steps.add(rounded_kernels_of(group.a).of(vendor_of(operands, group.c, shape), shape), items_of(shape),
              group.a, group.b, operands.bias, operands.residual, sums, group.c, shape);
  };
  advance(shape);
  if (shape.last == shape.inner) {
    round(std::span<const float>());
  } else {
    const Scratch<float> sums(group.c.size());
    for (; shape.last < shape.inner; advance(shape))
      add_stretch<T, float>(steps, kernels_of(group.a), {.a = group.a, .b = group.b, .libraries = libraries},
                            sums, shape);
    round(sums);
  }
  return std::nullopt;
}

std::optional<std::string> add(Steps& steps, const MatmulGroup<float, float>& group) {
  return add_product(steps, group.options.tf32 ? tf32_kernels() : float_kernels(), group);
}
std::optional<std::string> add(Steps& steps, const MatmulGroup<std::int8_t, std::int32_t>& group) {
  return add_product(steps, int8_kernels(), group);
}
template <class T>
std::optional<std::string> add(Steps& steps, const MatmulGroup<T, float>& group) {
  return add_product(steps, kernels_of(group.a), group);
}
template <class T>
std::optional<std::string> add(Steps& steps, const MatmulGroup<T, T>& group) {
  return add_rounded_product(steps, group);
}

/// Makes the job of one product.
template <class T, class R>
Job product(const MatmulGroup<T, R>& group) {
  Steps steps;
  if (auto why = add(steps, group)) return refused_product(*std::move(why));
  return std::move(steps).job("matmul", workload_types::matrix);
}

/// Makes the job of several.
template <class T, class R>
Job products(std::span<const MatmulGroup<T, R>> groups) {
  if (groups.empty()) return refused_product("Groups (0) of workload 'matmul' are below the minimum (1).");
  Steps steps;
  for (const MatmulGroup<T, R>& group : groups)
    if (const auto why = add(steps, group))
      return refused_product("Group " + std::to_string(&group - groups.data()) + " of " +
                             std::to_string(groups.size()) + ": " + *why);
  return std::move(steps).job("matmul", workload_types::matrix);
}

}  // namespace

void add_matmul(Steps& steps, const Read<float>& a, const Read<float>& b, const Write<float>& c,
                Product shape) {
  add_products(steps, float_kernels(), {a, b}, c, shape);
}

template <class T>
std::optional<std::string> add_product_of_rows(Steps& steps, const MatmulGroup<T, T>& group) {
  if constexpr (std::is_same_v<T, float>)
    return add_product(steps, float_kernels(), group, false);
  else
    return add_rounded_product(steps, group, false);
}
template std::optional<std::string> add_product_of_rows(Steps&, const MatmulGroup<float, float>&);
template std::optional<std::string> add_product_of_rows(Steps&, const MatmulGroup<half, half>&);
template std::optional<std::string> add_product_of_rows(Steps&, const MatmulGroup<bfloat16, bfloat16>&);

std::string matmul_on_cuda() {
  if (const std::optional<Error> absent = cublas::absence()) return "wye's own kernel: " + absent->sentence();
  const cublas::Probed probed = cublas::probed();
  if (probed.refusals.empty()) return "cuBLAS";
  return (probed.any ? "cuBLAS, or wye's own kernel: " : "wye's own kernel: ") + probed.refusals;
}

Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape) {
  return product<float, float>({a, b, c, shape});
}
Job matmul(Read<float> a, Read<float> b, Write<float> c, MatmulShape shape, const MatmulOptions& options,
           const MatmulEpilogue<float>& epilogue) {
  return product<float, float>({a, b, c, shape, options, epilogue});
}
Job matmul(Read<half> a, Read<half> b, Write<float> c, MatmulShape shape, const MatmulOptions& options,
           const MatmulEpilogue<float>& epilogue) {
  return product<half, float>({a, b, c, shape, options, epilogue});
}
Job matmul(Read<half> a, Read<half> b, Write<half> c, MatmulShape shape, const MatmulOptions& options,
           const MatmulEpilogue<half>& epilogue) {
  return product<half, half>({a, b, c, shape, options, epilogue});
}
Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<float> c, MatmulShape shape,
           const MatmulOptions& options, const MatmulEpilogue<float>& epilogue) {
  return product<bfloat16, float>({a, b, c, shape, options, epilogue});
}
Job matmul(Read<bfloat16> a, Read<bfloat16> b, Write<bfloat16> c, MatmulShape shape,
           const MatmulOptions& options, const MatmulEpilogue<bfloat16>& epilogue) {
  return product<bfloat16, bfloat16>({a, b, c, shape, options, epilogue});
}
Job matmul(Read<std::int8_t> a, Read<std::int8_t> b, Write<std::int32_t> c, MatmulShape shape,
           const MatmulOptions& options) {
  return product<std::int8_t, std::int32_t>({a, b, c, shape, options});
}

Job matmul(std::span<const MatmulGroup<float, float>> groups) { return products(groups); }
Job matmul(std::span<const MatmulGroup<half, float>> groups) { return products(groups); }
Job matmul(std::span<const MatmulGroup<half, half>> groups) { return products(groups); }
Job matmul(std::span<const MatmulGroup<bfloat16, float>> groups) { return products(groups); }
Job matmul(std::span<const MatmulGroup<bfloat16, bfloat16>> groups) { return products(groups); }
Job matmul(std::span<const MatmulGroup<std::int8_t, std::int32_t>> groups) { return products(groups); }

}  // namespace wye::workloads
