// The variants of attention with tiles in shared memory, which GPUs choose, on every Vulkan device.
#include <wye/runtime/runtime.hpp>
#include <wye/workloads/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "attention_kernels.hpp"
#include "steps.hpp"
#include "variants.hpp"
#include "workloads/vectors.hpp"

using namespace wye;
using namespace wye::test;
using workloads::AttentionStretch;
using workloads::KernelText;
namespace kernels = workloads::kernels;

namespace {

struct TiledAttention {
  std::uint32_t heads, queries, keys, head_size, value_size;
  bool causal = false;
  std::uint32_t masks = 0;  // 0, 1 or as many as heads
  std::uint32_t stretch = 16384;
  bool special = false;  // zeros, infinities and NaN
};

std::string description(const TiledAttention& given) {
  return std::to_string(given.heads) + " heads of " + std::to_string(given.queries) + " queries and " +
         std::to_string(given.keys) + " keys, sizes " + std::to_string(given.head_size) + " and " +
         std::to_string(given.value_size) + (given.causal ? ", causal" : "") +
         (given.masks != 0 ? ", masked" : "") + ", stretches of " + std::to_string(given.stretch);
}

template <class T>
std::vector<T> attention_elements(std::size_t count, std::uint32_t seed, bool special) {
  std::vector<T> made = elements<T>(count, seed);
  if (!special) return made;
  const std::vector<T> list = equal_elements<T>(count, seed);
  for (std::size_t i = seed; i < count; i += 1 + 17 * seed) made[i] = list[i];
  return made;
}

/// Runs one text on Vulkan over all stretches. Returns the result, which is poisoned before.
template <class T>
std::vector<T> attention_by(const TiledAttention& given, bool tiled) {
  const std::uint64_t all_queries = std::uint64_t{given.heads} * given.queries,
                      all_keys = std::uint64_t{given.heads} * given.keys;
  const auto q = attention_elements<T>(all_queries * given.head_size, 1, given.special),
             k = attention_elements<T>(all_keys * given.head_size, 2, given.special),
             v = attention_elements<T>(all_keys * given.value_size, 3, given.special);
  auto mask = numbers(std::uint64_t{given.masks} * given.queries * given.keys, 4);
  for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = -infinity;
  std::vector<T> result = poison<T>(all_queries * given.value_size);
  std::vector<float> state = poisoned(all_queries * workloads::state_size(given.value_size));
  AttentionStretch stretch{.heads = given.heads,
                           .queries = given.queries,
                           .keys = given.keys,
                           .sizes = AttentionStretch::sizes_of(given.head_size, given.value_size),
                           .causal = given.causal,
                           .scale = 0.7f};
  const Extent3 items = workloads::flat(given.heads * workloads::blocks_of_head(given.queries) *
                                        workloads::items_per_query_block);
  using Plain = workloads::AttentionKernel<T>;
  using Masked = workloads::MaskedAttentionKernel<T>;
  const KernelText& text =
      workloads::text_for<T>(kernels::attention, kernels::attention_half, kernels::attention_bfloat16);
  const KernelText& masked_text = workloads::text_for<T>(
      kernels::attention_masked, kernels::attention_half_masked, kernels::attention_bfloat16_masked);
  static const Plain plain[] = {
      workloads::make_attention_kernel<T>(text).value(),
      workloads::make_tiled_attention_kernel<Plain>(text, workloads::attention_parameters(), {}).value()};
  static const Masked masked[] = {workloads::make_masked_attention_kernel<T>(masked_text).value(),
                                  workloads::make_tiled_attention_kernel<Masked>(
                                      masked_text, workloads::masked_attention_parameters(), {})
                                      .value()};
  do {
    stretch.first = stretch.last;
    stretch.last += std::min(given.stretch, stretch.keys - stretch.first);
    if (given.masks != 0)
      run(masked[tiled](q, k, v, result, mask, state, stretch).over(items), "vulkan");
    else
      run(plain[tiled](q, k, v, result, state, stretch).over(items), "vulkan");
  } while (stretch.last < stretch.keys);
  return result;
}

/// Returns whether both texts give the same bits. The bits of NaN are undefined.
template <class T>
bool attention_bits_are_equal(const TiledAttention& given) {
  const std::vector<T> plain = attention_by<T>(given, false), tiled = attention_by<T>(given, true);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const T &a = plain[i], &b = tiled[i];
    if (std::memcmp(&a, &b, sizeof(T)) == 0) continue;
    if (!std::isnan(static_cast<float>(a)) || !std::isnan(static_cast<float>(b))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("tiled attention has the bits of attention without tiles, in any shape",
          "[workloads][attention][tiled]") {
  if (!has_leg("vulkan")) return;
  for (const TiledAttention& given : {TiledAttention{1, 1, 1, 1, 1},
                                      {2, 33, 40, 8, 8},
                                      {3, 65, 31, 15, 33},
                                      {1, 100, 70, 64, 64, true},
                                      {2, 5, 130, 40, 130, true},
                                      {1, 40, 33, 256, 256},
                                      {2, 31, 64, 39, 70, false, 1},
                                      {2, 70, 50, 33, 20, true, 2},
                                      {3, 50, 9, 7, 5, true, 1},
                                      {1, 37, 101, 32, 129, false, 0, 40},
                                      {2, 9, 100, 36, 32, true, 2, 33},
                                      {1, 3, 0, 4, 4},
                                      {1, 0, 3, 4, 4}}) {
    INFO(description(given));
    CHECK(attention_bits_are_equal<float>(given));
    if (given.keys % 2 == 0)
      CHECK(attention_bits_are_equal<half>(given));
    else
      CHECK(attention_bits_are_equal<bfloat16>(given));
  }
}

TEST_CASE("tiled attention propagates zeros, infinities and NaN as attention without tiles does",
          "[workloads][attention][tiled]") {
  if (!has_leg("vulkan")) return;
  for (const bool causal : {false, true})
    for (const std::uint32_t masks : {0u, 1u}) {
      const TiledAttention given{2, 50, 60, 12, 35, causal, masks, 16384, true};
      INFO(description(given));
      CHECK(attention_bits_are_equal<float>(given));
      CHECK(attention_bits_are_equal<half>(given));
      CHECK(attention_bits_are_equal<bfloat16>(given));
    }
}

TEST_CASE("tiled attention has these bits in random shapes", "[workloads][attention][tiled]") {
  if (!has_leg("vulkan")) return;
  std::mt19937 random(2028);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (std::uint32_t i = 0; i < 60; ++i) {
    const std::uint32_t heads = 1 + below(3);
    const TiledAttention given{heads,
                               1 + below(80),
                               1 + below(90),
                               1 + below(i % 8 == 0 ? 256 : 70),
                               1 + below(i % 7 == 0 ? 256 : 70),
                               below(2) != 0,
                               below(3) == 0   ? 0
                               : below(2) == 0 ? 1
                                               : heads,
                               1 + below(100)};
    INFO(description(given));
    for_float_type(i, [&](auto type) { CHECK(attention_bits_are_equal<decltype(type)>(given)); });
  }
}

TEST_CASE("only devices that are no CPUs choose attention with tiles", "[workloads][attention][tiled]") {
  if (!has_leg("vulkan")) return;
  const std::vector<Device> devices = the_runtime().devices();
  const auto vulkan = std::find_if(devices.begin(), devices.end(),
                                   [](const Device& device) { return device.info().backend == "vulkan"; });
  REQUIRE(vulkan != devices.end());
  const std::vector<float> q = numbers(8 * 16, 1);
  std::vector<float> out(q.size());
  std::string reason;
  for (int i = 0; i < 7; ++i)
    reason = run(workloads::attention(q, q, q, out, {.heads = 1, .queries = 8, .keys = 8, .head_size = 16}),
                 "vulkan")
                 .reason();
  INFO(reason);
  CHECK((reason.find("'attention_tiled'") != std::string::npos) == (vulkan->info().type != AdapterType::cpu));
}
