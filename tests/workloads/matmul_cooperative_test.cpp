// The GLSL texts of products with cooperative matrices, on Vulkan devices that have them.
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "matmul_kernels.hpp"
#include "support/skip.hpp"
#include "workloads/product_case.hpp"

using namespace wye;
using namespace wye::test;
using workloads::Activation;
using workloads::MatmulShape;
using workloads::Product;
namespace kernels = workloads::kernels;

namespace {

/// All types of adapters: lavapipe is a CPU.
const std::vector<AdapterType> all_adapters;

template <class C>
const workloads::KernelText& cooperative_text() {
  return std::is_same_v<C, float> ? kernels::matmul_half_cooperative
                                  : kernels::matmul_half_rounded_cooperative;
}
template <class C>
auto cooperative_kernel(std::vector<AdapterType> adapters = all_adapters) {
  return workloads::make_cooperative_kernel<half, C>(cooperative_text<typename C::element_type>(),
                                                     std::move(adapters));
}

/// A job that computes one number.
Job smallest_job(std::span<float> c) {
  static const std::vector<half> one{half(1.0f)};
  const std::span<const float> none;
  const Product product{
      .rows = 1, .columns = 1, .inner = 1, .last = 1, .a_step = 1, .b_step = 1, .c_step = 1};
  return Job((*cooperative_kernel<Write<float>>())(one, one, none, none, c, product)
                 .over(workloads::items_per_block));
}

const AdapterInfo* vulkan_adapter() {
  static const std::vector<Device> devices = the_runtime().devices();
  for (const Device& device : devices)
    if (device.info().backend == "vulkan") return &device.info();
  return nullptr;
}

/// Returns whether kernels with cooperative matrices run here. Reports a skip if not.
bool has_cooperative_matrices() {
  if (!has_leg("vulkan")) return false;
  if (!vulkan_adapter()->features.has(Feature::cooperative_matrix)) {
    skip("the Vulkan device has no cooperative matrices");
    return false;
  }
  std::vector<float> c(1);
  const auto done = the_runtime().run(smallest_job(c), {.on = "vulkan"});
  if (!done && done.error() == Errc::unsupported) {
    skip(done.error().sentence());
    return false;
  }
  REQUIRE(done);
  return true;
}

/// The stretch of each element of c that a kernel adds last, in float64: with the absolute values
/// of terms and sums.
struct Exact {
  std::vector<double> values, sizes;
};

template <class C>
Exact exact_product(const ProductCase& given) {
  const std::vector<half> a = factors<half>(given.a_size(), 1, given.special),
                          b = factors<half>(given.b_size(), 2, given.special);
  const MatmulShape& shape = given.shape;
  const workloads::MatmulOptions& options = given.options;
  const std::uint64_t one = shape.rows * shape.columns, c_step = options.c_step.value_or(one);
  const bool rounds = std::is_same_v<C, half>;
  const std::uint64_t first = rounds && shape.inner > given.stretch ? given.stretch : 0;
  const std::vector<float> before = numbers(first != 0 ? given.c_size() : 0, 5);
  Exact exact{std::vector<double>(given.c_size()), std::vector<double>(given.c_size())};
  for (std::uint64_t i = 0; i < options.batch * one; ++i) {
    const std::uint64_t n = i / one, row = i % one / shape.columns, column = i % shape.columns;
    const std::uint64_t at = n * c_step + i % one;
    double sum = before.empty() ? 0 : before[at], size = std::abs(sum);
    for (std::uint64_t k = first; k < shape.inner; ++k) {
      const double left =
          static_cast<float>(a[n * options.a_step.value_or(shape.rows * shape.inner) +
                               (options.transposed_a ? k * shape.rows + row : row * shape.inner + k)]);
      const double right = static_cast<float>(
          b[n * options.b_step.value_or(shape.inner * shape.columns) +
            (options.transposed_b ? column * shape.inner + k : k * shape.columns + column)]);
      sum += left * right;
      size += std::abs(left * right);
    }
    exact.values[at] = sum;
    exact.sizes[at] = size;
  }
  return exact;
}

/// Compares a product with float64, by the documented bound. Elements between matrices stay as they
/// are.
template <class C>
std::string difference_of(const ProductCase& given) {
  std::vector<C> c;
  static const auto set = cooperative_kernel<Write<C>>().value();
  if constexpr (std::is_same_v<C, float>) {
    static const auto add = cooperative_kernel<ReadWrite<C>>().value();
    c = run_product<half, C>(given, set, add);
  } else {
    c = run_product<half, C>(given, set, set);
  }
  const auto doubles = [](const std::vector<C>& values) {
    std::vector<double> made;
    for (const C value : values) made.push_back(static_cast<float>(value));
    return made;
  };
  const std::uint64_t one = given.shape.rows * given.shape.columns;
  const std::vector<C> start = poison<C>(given.c_size());
  const std::vector<double> bias = doubles(elements<C>(given.ending.bias ? given.shape.columns : 0, 3)),
                            residual = doubles(elements<C>(given.ending.residual ? c.size() : 0, 4));
  const Exact product = exact_product<C>(given);
  std::vector<double> exact = product.values;
  if (given.options.c_step) {  // c is added to
    for (std::size_t i = 0; i < c.size(); ++i) exact[i] += static_cast<float>(start[i]);
  } else {
    exact = workloads::reference::matmul_epilogue(product.values, given.shape.columns, given.ending.scale,
                                                  bias, given.ending.activation, residual);
  }
  return difference(floats(c), exact, [&](std::size_t i) {
    if (one != 0 && i % given.options.c_step.value_or(one) >= one) return 0.0;
    const double scaled = std::abs(given.ending.scale) * product.sizes[i];
    const double sum = 1.13 * static_cast<double>(given.shape.inner + 2) * 0x1p-23 * scaled +
                       0x1p-20 * (scaled + (bias.empty() ? 0 : std::abs(bias[i % given.shape.columns])) +
                                  (residual.empty() ? 0 : std::abs(residual[i])) +
                                  (given.options.c_step ? std::abs(static_cast<float>(start[i])) : 0));
    return with_rounding<C>(sum, exact[i]);
  });
}

void both_are_right(const ProductCase& given) {
  INFO(description(given));
  CHECK(difference_of<float>(given) == "");
  if (!given.options.c_step) CHECK(difference_of<half>(given) == "");
}

}  // namespace

TEST_CASE("products by cooperative matrices are right in any shape", "[workloads][products][cooperative]") {
  if (!has_cooperative_matrices()) return;
  for (const ProductCase& given : cases_of_shapes()) both_are_right(given);
}

TEST_CASE("products by cooperative matrices are right in batches, over several stretches and with epilogues",
          "[workloads][products][cooperative]") {
  if (!has_cooperative_matrices()) return;
  for (const ProductCase& given : cases_of_options()) both_are_right(given);
  both_are_right({{3, 2, 33001}, {.transposed_b = true}, {.bias = true}});
}

TEST_CASE("products by cooperative matrices propagate zeros, infinities and NaN",
          "[workloads][products][cooperative]") {
  if (!has_cooperative_matrices()) return;
  for (const ProductCase& given : cases_of_special_numbers()) both_are_right(given);
}

TEST_CASE("products by cooperative matrices are right in random shapes",
          "[workloads][products][cooperative]") {
  if (!has_cooperative_matrices()) return;
  std::mt19937 random(2028);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int i = 0; i < 100; ++i)
    both_are_right({{1 + below(i % 10 == 0 ? 300 : 80), 1 + below(i % 7 == 0 ? 300 : 80), below(90)},
                    {.transposed_a = below(2) != 0, .transposed_b = below(2) != 0, .batch = 1 + below(3)},
                    {.scale = static_cast<float>(below(5)) - 2,
                     .activation = static_cast<Activation>(below(5)),
                     .bias = below(2) != 0,
                     .residual = below(2) != 0},
                    1 + below(80)});
}

TEST_CASE("GPUs with cooperative matrices choose between three products of half",
          "[workloads][products][cooperative]") {
  if (!has_cooperative_matrices()) return;
  const AdapterType type = vulkan_adapter()->type;
  const MatmulShape shape{37, 41, 43};
  const auto a = elements<half>(37 * 43, 1), b = elements<half>(43 * 41, 2);
  std::vector<float> c(37 * 41);
  std::string reason;
  for (int i = 0; i < 10; ++i) reason = run(workloads::matmul(a, b, c, shape), "vulkan").reason();
  INFO(reason);
  CHECK((reason.find("'matmul_half_cooperative'") != std::string::npos) == (type != AdapterType::cpu));
  // Without measurements, a device prefers variants for its type of adapter.
  const auto kernel =
      workloads::with_variant(workloads::make_product_kernel<half, Write<float>>(kernels::matmul_half),
                              cooperative_kernel<Write<float>>({type}));
  Runtime unmeasured =
      Runtime::open({.pool = {.backends = {"vulkan"}}, .scheduler = {.measure_variants = false}}).value();
  const Product product{.rows = 37, .columns = 41, .inner = 43, .last = 43};
  const std::span<const float> none;
  const auto done = unmeasured.run(
      Job((*kernel)(a, b, none, none, c, product).over(workloads::items_per_block)), {.on = "vulkan"});
  REQUIRE(done);
  CHECK(done->code().front().kernel == "matmul_half_cooperative");
}

TEST_CASE("devices without cooperative matrices use other products", "[workloads][products][cooperative]") {
  if (!has_leg("vulkan")) return;
  if (vulkan_adapter()->features.has(Feature::cooperative_matrix))
    return skip("the Vulkan device has cooperative matrices");
  std::vector<float> c(1);
  const auto refused = the_runtime().run(smallest_job(c), {.on = "vulkan"});
  REQUIRE_FALSE(refused);
  CHECK(refused.error() == Errc::unsupported);
  CHECK(refused.error().describe().find("cooperative_matrix") != std::string::npos);
}
