#pragma once
/// Kernels of products and of attention, made of equivalent texts. CUDA texts use tensor cores if possible;
/// those named `<name>_plain` do not.
#include <wye/device/parameter.hpp>

#include <utility>
#include <vector>

#include "attention_stretch.hpp"
#include "kernel_text.hpp"
#include "product.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {

/// Returns `kernel` with the variant `plain` for CUDA, between which autotuning chooses. Builds without CUDA
/// have no text for `plain` and return `kernel`.
template <class... P>
Result<Kernel<P...>> with_plain(Result<Kernel<P...>> kernel, const Result<Kernel<P...>>& plain) {
  if (!kernel || !plain) return kernel;
  return fastest_of(*kernel, {*plain});
}

template <class T, class C>
using ProductKernel = Kernel<Read<T>, Read<T>, C, Product>;

/// Makes a product kernel of `text` and `others`. A CUDA block computes 128 x 128 elements of c, which are
/// four tiles of a GLSL workgroup.
template <class T, class C>
Result<ProductKernel<T, C>> make_product_kernel(
    const KernelText& text, std::vector<typename ProductKernel<T, C>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, C, Product>(text, {"a", "b", "c", "shape"}, {.cuda = Extent3(1024)},
                                                   std::move(others));
}

template <class T>
using AttentionKernel = Kernel<Read<T>, Read<T>, Read<T>, Write<T>, ReadWrite<float>, AttentionStretch>;

/// Makes an attention kernel of `text` and `others`. A CUDA block has 64 queries.
template <class T>
Result<AttentionKernel<T>> make_attention_kernel(
    const KernelText& text, std::vector<typename AttentionKernel<T>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, Read<T>, Write<T>, ReadWrite<float>, AttentionStretch>(
      text, {"q", "k", "v", "result", "state", "stretch"}, {.cuda = Extent3(items_per_query_block)},
      std::move(others));
}

template <class T>
using MaskedAttentionKernel =
    Kernel<Read<T>, Read<T>, Read<T>, Write<T>, Read<float>, ReadWrite<float>, AttentionStretch>;

/// Makes an attention kernel with a mask. None of its texts uses tensor cores.
template <class T>
Result<MaskedAttentionKernel<T>> make_masked_attention_kernel(
    const KernelText& text, std::vector<typename MaskedAttentionKernel<T>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, Read<T>, Write<T>, Read<float>, ReadWrite<float>, AttentionStretch>(
      text, {"q", "k", "v", "result", "mask", "state", "stretch"}, {.cuda = Extent3(items_per_query_block)},
      std::move(others));
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
