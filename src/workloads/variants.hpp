#pragma once
/// Kernels of products and of attention, made of equivalent texts. CUDA texts use tensor cores if
/// possible; those named `<name>_plain` do not. GLSL variants named `<name>_tiled` use shared
/// memory, those named `<name>_cooperative` cooperative matrices.
#include <wye/device/adapter.hpp>
#include <wye/device/parameter.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention_stretch.hpp"
#include "kernel_text.hpp"
#include "product.hpp"

namespace wye::inline v0::workloads {

/// Returns `kernel` with another variant. Autotuning chooses between them. Builds without the
/// language of `variant` have no text for it and return `kernel`.
template <class... P>
Result<Kernel<P...>> with_variant(Result<Kernel<P...>> kernel, const Result<Kernel<P...>>& variant) {
  if (!kernel || !variant) return kernel;
  return fastest_of(*kernel, {*variant});
}

/// The types of adapters that run texts with tiles in shared memory: all except CPUs. On the CPU,
/// shared memory costs more than it saves.
inline const std::vector<AdapterType>& tiled_adapters() {
  static const std::vector<AdapterType> types{AdapterType::integrated, AdapterType::discrete,
                                              AdapterType::virtual_gpu, AdapterType::other};
  return types;
}

/// A product kernel with the parameters `P`.
template <class... P>
struct ProductKernelWith {
  using Kernel = wye::Kernel<P...>;
  static Result<Kernel> make(const KernelText& text, std::vector<std::string> parameters,
                             std::vector<typename Kernel::Source> others, std::vector<AdapterType> adapters) {
    // A CUDA block computes 128 x 128 elements of c, which are four tiles of a GLSL workgroup.
    return make_kernel<P...>(text, std::move(parameters), {.cuda = Extent3(1024)}, std::move(others),
                             std::move(adapters));
  }
};
/// Kernels of products. The last stretch adds `bias` and `residual`, which may be empty.
template <class T, class C>
struct ProductParameters : ProductKernelWith<Read<T>, Read<T>, Read<typename C::element_type>,
                                             Read<typename C::element_type>, C, Product> {
  static std::vector<std::string> names() { return {"a", "b", "bias", "residual", "c", "shape"}; }
};
/// `sums` are those of the stretches before the last, or empty.
template <class T>
requires(sizeof(T) == 2) struct ProductParameters<T, Write<T>>
    : ProductKernelWith<Read<T>, Read<T>, Read<T>, Read<T>, Read<float>, Write<T>, Product> {
  static std::vector<std::string> names() { return {"a", "b", "bias", "residual", "sums", "c", "shape"}; }
};
/// Integers have no epilogue.
template <class C>
struct ProductParameters<std::int8_t, C>
    : ProductKernelWith<Read<std::int8_t>, Read<std::int8_t>, C, Product> {
  static std::vector<std::string> names() { return {"a", "b", "c", "shape"}; }
};
template <class T, class C>
using ProductKernel = typename ProductParameters<T, C>::Kernel;

/// Makes a product kernel of `text` and `others`, for all adapters or for those of some types.
template <class T, class C>
Result<ProductKernel<T, C>> make_product_kernel(const KernelText& text,
                                                std::vector<typename ProductKernel<T, C>::Source> others = {},
                                                std::vector<AdapterType> adapters = {}) {
  using Parameters = ProductParameters<T, C>;
  return Parameters::make(text, Parameters::names(), std::move(others), std::move(adapters));
}

/// Makes a product kernel of a GLSL text with cooperative matrices. A workgroup computes 128 x 128
/// elements of c.
template <class T, class C>
Result<ProductKernel<T, C>> make_cooperative_kernel(const KernelText& text,
                                                    std::vector<AdapterType> adapters = tiled_adapters()) {
  return ProductKernel<T, C>::make({.name = text.name,
                                    .sources = {glsl_source(text, Extent3(1024))},
                                    .parameters = ProductParameters<T, C>::names(),
                                    .adapters = std::move(adapters),
                                    .features = {Feature::cooperative_matrix},
                                    .has_short_loops = true});
}

/// The names of the parameters of attention kernels, without and with a mask.
inline std::vector<std::string> attention_parameters() {
  return {"q", "k", "v", "result", "state", "stretch"};
}
inline std::vector<std::string> masked_attention_parameters() {
  return {"q", "k", "v", "result", "mask", "state", "stretch"};
}

template <class T>
using AttentionKernel = Kernel<Read<T>, Read<T>, Read<T>, Write<T>, ReadWrite<float>, AttentionStretch>;

/// Makes an attention kernel of `text` and `others`. A CUDA block has 64 queries.
template <class T>
Result<AttentionKernel<T>> make_attention_kernel(
    const KernelText& text, std::vector<typename AttentionKernel<T>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, Read<T>, Write<T>, ReadWrite<float>, AttentionStretch>(
      text, attention_parameters(), {.cuda = Extent3(items_per_query_block)}, std::move(others));
}

/// The items of a workgroup of a GLSL text with tiles: 32 queries.
inline constexpr std::uint32_t items_of_attention_tile = 32 * items_per_query;

/// Makes the variant `<name>_tiled` of the GLSL text of an attention kernel `K`: the same text with
/// TILED defined, which adds in the same order. Only `adapters` run it.
template <class K>
Result<K> make_tiled_attention_kernel(const KernelText& text, std::vector<std::string> parameters,
                                      std::vector<AdapterType> adapters = tiled_adapters()) {
  Glsl source = glsl_source(text, Extent3(items_of_attention_tile));
  source.macros = {{.name = "TILED", .value = ""}};
  return K::make({.name = std::string(text.name) + "_tiled",
                  .sources = {std::move(source)},
                  .parameters = std::move(parameters),
                  .adapters = std::move(adapters),
                  .has_short_loops = true});
}

template <class T>
using MaskedAttentionKernel =
    Kernel<Read<T>, Read<T>, Read<T>, Write<T>, Read<float>, ReadWrite<float>, AttentionStretch>;

/// Makes an attention kernel with a mask. None of its texts uses tensor cores.
template <class T>
Result<MaskedAttentionKernel<T>> make_masked_attention_kernel(
    const KernelText& text, std::vector<typename MaskedAttentionKernel<T>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, Read<T>, Write<T>, Read<float>, ReadWrite<float>, AttentionStretch>(
      text, masked_attention_parameters(), {.cuda = Extent3(items_per_query_block)}, std::move(others));
}

}  // namespace wye::workloads
