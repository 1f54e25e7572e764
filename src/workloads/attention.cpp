#include <wye/workloads/attention.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "attention_kernels.hpp"
#include "cpu.hpp"
#include "cudnn.hpp"
#include "steps.hpp"
#include "variants.hpp"

namespace wye::inline v0::workloads {
namespace {

/// The largest row whose sums of values fit into the registers of a CUDA block, in two passes.
constexpr std::uint64_t largest_head_size = 256;
/// The most keys of one step. Limits the loops of shaders.
constexpr std::uint32_t keys_of_step = 16384;

/// On GPUs that take GLSL, autotuning chooses between the texts with and without tiles.
template <class T>
auto attention_kernel(const KernelText& text) {
  using Attend = void (*)(Range, std::span<const T>, std::span<const T>, std::span<const T>, std::span<T>,
                          std::span<float>, AttentionStretch);
  return with_variant(make_attention_kernel<T>(text, {host(static_cast<Attend>(cpu::attention),
                                                           {.tile = Extent3(4 * items_per_query_block)})}),
                      make_tiled_attention_kernel<AttentionKernel<T>>(text, attention_parameters()));
}
const auto& attention_kernel_of(const Read<float>&) {
  static const auto kernel = attention_kernel<float>(kernels::attention);
  return kernel;
}
const auto& attention_kernel_of(const Read<half>&) {
  static const auto kernel = with_variant(attention_kernel<half>(kernels::attention_half),
                                          make_attention_kernel<half>(kernels::attention_half_plain));
  return kernel;
}
const auto& attention_kernel_of(const Read<bfloat16>&) {
  static const auto kernel = with_variant(attention_kernel<bfloat16>(kernels::attention_bfloat16),
                                          make_attention_kernel<bfloat16>(kernels::attention_bfloat16_plain));
  return kernel;
}

template <class T>
cudnn::Attention cudnn_attention(const AttentionStretch& stretch) {
  return {.bfloat = std::is_same_v<T, bfloat16>,
          .causal = stretch.causal != 0,
          .heads = stretch.heads,
          .queries = stretch.queries,
          .keys = stretch.keys,
          .head_size = stretch.head_size(),
          .value_size = stretch.value_size()};
}
/// Adds cuDNN as the last variant, because the first one is used without measurements. Only the
/// probe opens the library, and only CUDA calls the probe.
template <class T>
auto kernel_with_cudnn(NativeProbe probe) {
  using Kernel = AttentionKernel<T>;
  const auto attend = [](const NativeLane& lane, DeviceSpan<const T> q, DeviceSpan<const T> k,
                         DeviceSpan<const T> v, DeviceSpan<T> out, DeviceSpan<float> workspace,
                         AttentionStretch stretch) {
    return cudnn::attend(lane, cudnn_attention<T>(stretch),
                         {q.data, k.data, v.data, out.data, workspace.data, workspace.size * sizeof(float)},
                         stretch.scale);
  };
  const auto& own = attention_kernel_of(Read<T>(std::span<const T>()));
  return with_variant(own, Kernel::make({.name = std::is_same_v<T, half> ? "attention_half_cudnn"
                                                                         : "attention_bfloat16_cudnn",
                                         .sources = {native("cuda", attend, probe)},
                                         .parameters = attention_parameters()}));
}
template <class T>
const auto& kernel_with_cudnn_of(bool causal) {
  static const auto visible = kernel_with_cudnn<T>(cudnn::probe);
  static const auto hidden = kernel_with_cudnn<T>(cudnn::probe_causal);
  return causal ? hidden : visible;
}

/// Returns whether cuDNN may compute the stretch: all keys at once, with a positive scale. It looks
/// for the largest score before it scales.
template <class T>
bool may_use_cudnn(const Read<T>& q, const Read<T>& k, const Read<T>& v, const Write<T>& out,
                   const AttentionStretch& stretch, const AttentionOptions& options) {
  constexpr std::uint64_t bytes = 16;
  const cudnn::Attention attention = cudnn_attention<T>(stretch);
  return !options.mask && stretch.keys <= keys_of_step && stretch.scale > 0 && begins_at(q, bytes) &&
         begins_at(k, bytes) && begins_at(v, bytes) && begins_at(out, bytes) && cudnn::takes(attention) &&
         !cudnn::known_absent() && cudnn::admits(attention);
}

template <class T>
auto masked_kernel(const KernelText& text) {
  using Attend = void (*)(Range, std::span<const T>, std::span<const T>, std::span<const T>, std::span<T>,
                          std::span<const float>, std::span<float>, AttentionStretch);
  return with_variant(
      make_masked_attention_kernel<T>(text, {host(static_cast<Attend>(cpu::masked_attention),
                                                  {.tile = Extent3(4 * items_per_query_block)})}),
      make_tiled_attention_kernel<MaskedAttentionKernel<T>>(text, masked_attention_parameters()));
}
const auto& masked_kernel_of(const Read<float>&) {
  static const auto kernel = masked_kernel<float>(kernels::attention_masked);
  return kernel;
}
const auto& masked_kernel_of(const Read<half>&) {
  static const auto kernel = masked_kernel<half>(kernels::attention_half_masked);
  return kernel;
}
const auto& masked_kernel_of(const Read<bfloat16>&) {
  static const auto kernel = masked_kernel<bfloat16>(kernels::attention_bfloat16_masked);
  return kernel;
}

/// Returns the reason if `size` elements are not `heads` of `rows` x `columns`.
std::optional<std::string> no_heads(const char* what, std::uint64_t size, std::uint64_t heads,
                                    std::uint64_t rows, std::uint64_t columns) {
  std::uint64_t all = 0;
  if (!__builtin_mul_overflow(rows * columns, heads, &all) && all == size) return std::nullopt;
  return std::string(what) + " (" + std::to_string(size) + " elements) of workload 'attention' are not " +
         std::to_string(heads) + " heads of " + std::to_string(rows) + " x " + std::to_string(columns) + ".";
}

/// Returns the reason if the sizes are invalid.
std::optional<std::string> no_attention(std::uint64_t q, std::uint64_t k, std::uint64_t v, std::uint64_t out,
                                        const AttentionShape& shape, const AttentionOptions& options) {
  const auto beyond = [](const char* what, std::uint64_t value, std::uint64_t limit) {
    return std::string(what) + " (" + std::to_string(value) +
           ") of workload 'attention' exceeds the limit (" + std::to_string(limit) + ").";
  };
  if (shape.head_size == 0) return "Head size (0) of workload 'attention' is below the minimum (1).";
  if (shape.head_size > largest_head_size) return beyond("Head size", shape.head_size, largest_head_size);
  if (shape.value_size > largest_head_size) return beyond("Value size", shape.value_size, largest_head_size);
  if (const std::uint64_t most = std::max({shape.heads, shape.queries, shape.keys}); most > largest_dimension)
    return beyond("Dimension", most, largest_dimension);
  // Grids have at most 65,535 rows.
  const std::uint64_t most = flat_width * 65535 / items_per_query_block,
                      blocks = shape.heads * blocks_of_head(shape.queries);
  if (blocks > most) return beyond("Number of blocks of 64 queries", blocks, most);
  if (auto why = no_heads("Queries", q, shape.heads, shape.queries, shape.head_size)) return why;
  if (auto why = no_heads("Keys", k, shape.heads, shape.keys, shape.head_size)) return why;
  if (auto why = no_heads("Values", v, shape.heads, shape.keys, shape.value_size)) return why;
  if (auto why = no_heads("Results", out, shape.heads, shape.queries, shape.value_size)) return why;
  if (options.mask && options.mask->size() != shape.queries * shape.keys &&
      no_heads("Mask", options.mask->size(), shape.heads, shape.queries, shape.keys)) {
    const std::string one = std::to_string(shape.queries) + " x " + std::to_string(shape.keys);
    return "Mask (" + std::to_string(options.mask->size()) +
           " elements) of workload 'attention' is neither " + one + " nor that of " +
           std::to_string(shape.heads) + " heads of " + one + ".";
  }
  if (options.scale && !std::isfinite(*options.scale))
    return "Scale (" + std::to_string(*options.scale) + ") of workload 'attention' is not finite.";
  return std::nullopt;
}

template <class T>
Job attention_of(const Read<T>& q, const Read<T>& k, const Read<T>& v, const Write<T>& out,
                 AttentionShape shape, const AttentionOptions& options) {
  if (shape.value_size == 0) shape.value_size = shape.head_size;
  if (auto why = no_attention(q.size(), k.size(), v.size(), out.size(), shape, options))
    return refused("attention", workload_types::attention, *std::move(why));
  AttentionStretch stretch{.heads = static_cast<std::uint32_t>(shape.heads),
                           .queries = static_cast<std::uint32_t>(shape.queries),
                           .keys = static_cast<std::uint32_t>(shape.keys),
                           .sizes = AttentionStretch::sizes_of(shape.head_size, shape.value_size),
                           .causal = options.causal,
                           .scale = options.scale.value_or(
                               static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_size))))};
  const Extent3 items = flat(shape.heads * blocks_of_head(shape.queries) * items_per_query_block);
  Steps steps;
  if constexpr (sizeof(T) == 2) {
    if (may_use_cudnn(q, k, v, out, stretch, options)) {
      const Scratch<float> workspace(cudnn::workspace_size / sizeof(float));
      stretch.last = stretch.keys;
      steps.add(kernel_with_cudnn_of<T>(options.causal), items, q, k, v, out, workspace, stretch);
      return std::move(steps).job("attention", workload_types::attention);
    }
  }
  const Scratch<float> state(
      stretch.keys > keys_of_step ? shape.heads * shape.queries * state_size(shape.value_size) : 0);
  do {
    stretch.first = stretch.last;
    stretch.last += std::min(keys_of_step, stretch.keys - stretch.first);
    if (options.mask)
      steps.add(masked_kernel_of(q), items, q, k, v, out, *options.mask, state, stretch);
    else
      steps.add(attention_kernel_of(q), items, q, k, v, out, state, stretch);
  } while (stretch.last < stretch.keys);
  return std::move(steps).job("attention", workload_types::attention);
}

}  // namespace

Job attention(Read<float> q, Read<float> k, Read<float> v, Write<float> out, AttentionShape shape,
              AttentionOptions options) {
  return attention_of(q, k, v, out, shape, options);
}
Job attention(Read<half> q, Read<half> k, Read<half> v, Write<half> out, AttentionShape shape,
              AttentionOptions options) {
  return attention_of(q, k, v, out, shape, options);
}
Job attention(Read<bfloat16> q, Read<bfloat16> k, Read<bfloat16> v, Write<bfloat16> out, AttentionShape shape,
              AttentionOptions options) {
  return attention_of(q, k, v, out, shape, options);
}

}  // namespace wye::workloads
