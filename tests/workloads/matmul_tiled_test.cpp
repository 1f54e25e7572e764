// The GLSL texts of products with tiles in shared memory, which GPUs use, on every Vulkan device.
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/matmul.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "matmul_kernels.hpp"
#include "workloads/product_case.hpp"

using namespace wye;
using namespace wye::test;
using workloads::Activation;
using workloads::KernelText;
using workloads::MatmulShape;
using workloads::Product;
namespace kernels = workloads::kernels;

namespace {

/// The standard text and the tiled text of products of `T` in sums of `C`.
template <class T, class C>
std::pair<const KernelText*, const KernelText*> tiled_texts() {
  if constexpr (std::is_same_v<T, float>) return {&kernels::matmul, &kernels::matmul_tiled};
  if constexpr (std::is_same_v<T, std::int8_t>) return {&kernels::matmul_int8, &kernels::matmul_int8_tiled};
  if constexpr (std::is_same_v<T, half> && std::is_same_v<C, float>)
    return {&kernels::matmul_half, &kernels::matmul_half_tiled};
  if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<C, float>)
    return {&kernels::matmul_bfloat16, &kernels::matmul_bfloat16_tiled};
  if constexpr (std::is_same_v<T, half> && std::is_same_v<C, half>)
    return {&kernels::matmul_half_rounded, &kernels::matmul_half_rounded_tiled};
  if constexpr (std::is_same_v<T, bfloat16> && std::is_same_v<C, bfloat16>)
    return {&kernels::matmul_bfloat16_rounded, &kernels::matmul_bfloat16_rounded_tiled};
}

/// Runs the standard text or the tiled text.
template <class T, class C, bool tiled>
std::vector<C> product_by(const ProductCase& given) {
  const KernelText& text = tiled ? *tiled_texts<T, C>().second : *tiled_texts<T, C>().first;
  static const auto set = workloads::make_product_kernel<T, Write<C>>(text).value();
  if constexpr (sizeof(C) == 2) {
    return run_product<T, C>(given, set, set);
  } else {
    static const auto add = workloads::make_product_kernel<T, ReadWrite<C>>(text).value();
    return run_product<T, C>(given, set, add);
  }
}

/// Returns whether both texts give the same bits. The bits of NaN are undefined.
template <class T, class C>
bool bits_are_equal(const ProductCase& given) {
  const std::vector<C> standard = product_by<T, C, false>(given), tiled = product_by<T, C, true>(given);
  for (std::size_t i = 0; i < standard.size(); ++i) {
    const C &a = standard[i], &b = tiled[i];
    if (std::memcmp(&a, &b, sizeof(C)) == 0) continue;
    if (!std::isnan(static_cast<float>(a)) || !std::isnan(static_cast<float>(b))) return false;
  }
  return true;
}

/// Of all types.
void all_bits_are_equal(ProductCase given) {
  INFO(description(given));
  CHECK(bits_are_equal<float, float>(given));
  CHECK(bits_are_equal<half, float>(given));
  CHECK(bits_are_equal<bfloat16, float>(given));
  CHECK(bits_are_equal<std::int8_t, std::int32_t>({given.shape, given.options, {}, given.stretch}));
  if (given.options.c_step) return;
  CHECK(bits_are_equal<half, half>(given));
  CHECK(bits_are_equal<bfloat16, bfloat16>(given));
}

}  // namespace

TEST_CASE("tiled products have the bits of products without tiles, in any shape",
          "[workloads][products][tiled]") {
  if (!has_leg("vulkan")) return;
  for (const ProductCase& given : cases_of_shapes()) all_bits_are_equal(given);
}

TEST_CASE("tiled products have these bits in batches, over several stretches and with epilogues",
          "[workloads][products][tiled]") {
  if (!has_leg("vulkan")) return;
  for (const ProductCase& given : cases_of_options()) all_bits_are_equal(given);
  CHECK(bits_are_equal<float, float>({{2, 3, 32768}}));
  CHECK(bits_are_equal<float, float>({{3, 2, 33001}, {.transposed_b = true}, {.bias = true}}));
}

TEST_CASE("tiled products propagate zeros, infinities and NaN as products without tiles do",
          "[workloads][products][tiled]") {
  if (!has_leg("vulkan")) return;
  for (const ProductCase& given : cases_of_special_numbers()) {
    INFO(description(given));
    CHECK(bits_are_equal<float, float>(given));
    CHECK(bits_are_equal<half, float>(given));
    CHECK(bits_are_equal<bfloat16, float>(given));
    CHECK(bits_are_equal<half, half>(given));
    CHECK(bits_are_equal<bfloat16, bfloat16>(given));
  }
}

TEST_CASE("tiled products have these bits in random shapes", "[workloads][products][tiled]") {
  if (!has_leg("vulkan")) return;
  std::mt19937 random(2027);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int i = 0; i < 120; ++i) {
    const ProductCase given{
        {1 + below(i % 10 == 0 ? 300 : 80), 1 + below(i % 7 == 0 ? 300 : 80), below(70)},
        {.transposed_a = below(2) != 0, .transposed_b = below(2) != 0, .batch = 1 + below(3)},
        {.scale = static_cast<float>(below(5)) - 2,
         .activation = static_cast<Activation>(below(5)),
         .bias = below(2) != 0,
         .residual = below(2) != 0},
        1 + below(80)};
    INFO(description(given));
    switch (i % 6) {
      case 0: CHECK(bits_are_equal<float, float>(given)); break;
      case 1: CHECK(bits_are_equal<half, float>(given)); break;
      case 2: CHECK(bits_are_equal<bfloat16, float>(given)); break;
      case 3:
        CHECK(bits_are_equal<std::int8_t, std::int32_t>({given.shape, given.options, {}, given.stretch}));
        break;
      case 4: CHECK(bits_are_equal<half, half>(given)); break;
      default: CHECK(bits_are_equal<bfloat16, bfloat16>(given));
    }
  }
}

TEST_CASE("only devices that are no CPUs choose between products with and without tiles",
          "[workloads][products][tiled]") {
  if (!has_leg("vulkan")) return;
  const std::vector<Device> devices = the_runtime().devices();
  const auto vulkan = std::find_if(devices.begin(), devices.end(),
                                   [](const Device& device) { return device.info().backend == "vulkan"; });
  REQUIRE(vulkan != devices.end());
  const AdapterType type = vulkan->info().type;
  const MatmulShape shape{37, 41, 43};
  const std::vector<float> a = numbers(37 * 43, 1), b = numbers(43 * 41, 2);
  std::vector<float> c(37 * 41);
  std::string reason;
  for (int i = 0; i < 7; ++i) reason = run(workloads::matmul(a, b, c, shape), "vulkan").reason();
  INFO(reason);
  CHECK((reason.find("'matmul_tiled'") != std::string::npos) == (type != AdapterType::cpu));

  // The same for this type of device.
  using Kernel = workloads::ProductKernel<float, Write<float>>;
  const Kernel kernel =
      workloads::with_variant(
          workloads::make_product_kernel<float, Write<float>>(kernels::matmul),
          workloads::make_product_kernel<float, Write<float>>(kernels::matmul_tiled, {}, {type}))
          .value();
  const Product product{.rows = 37, .columns = 41, .inner = 43, .last = 43};
  const Extent3 items = workloads::flat(workloads::blocks_of(product) * workloads::items_per_block);
  const std::span<const float> none;
  const auto job = [&] { return Job(kernel(a, b, none, none, c, product).over(items)); };
  for (int i = 0; i < 7; ++i) reason = run(job(), "vulkan").reason();
  INFO(reason);
  CHECK(reason.find("was selected from 2 variants: minimum times are 'matmul_tiled' ") != std::string::npos);
  Runtime same_bits =
      Runtime::open({.pool = {.backends = {"vulkan"}}, .scheduler = {.measure_variants = false}}).value();
  const auto done = same_bits.run(job(), {.on = "vulkan"});
  REQUIRE(done);
  CHECK(done->code().front().kernel == "matmul_tiled");
}
