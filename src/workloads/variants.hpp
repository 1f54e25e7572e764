#pragma once
/// Kernels of products and of attention, made of any of the texts that do the same: on CUDA there are some that multiply by
/// tensor cores, and some called `<name>_plain` that do not.
#include <wye/device/parameter.hpp>

#include <utility>
#include <vector>

#include "attention_stretch.hpp"
#include "kernel_text.hpp"
#include "product.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {

/// `kernel`, or on CUDA, where it is quicker for as much work, `plain`. Builds without CUDA have no text for the second: it is then
/// no kernel at all.
template <class... P>
Result<Kernel<P...>> with_plain(Result<Kernel<P...>> kernel, const Result<Kernel<P...>>& plain) {
  if (!kernel || !plain) return kernel;
  return fastest_of(*kernel, {*plain});
}

template <class T, class C>
using ProductKernel = Kernel<Read<T>, Read<T>, C, Product>;

/// Of `text` and `others`, in which a block of CUDA's makes 128 x 128 elements of c: four of the tiles that a workgroup of GLSL
/// makes.
template <class T, class C>
Result<ProductKernel<T, C>> make_product_kernel(
    const KernelText& text, std::vector<typename ProductKernel<T, C>::Source> others = {}) {
  return make_kernel<Read<T>, Read<T>, C, Product>(text, {"a", "b", "c", "shape"}, {.cuda = Extent3(1024)},
                                                   std::move(others));
}

template <class T>
using AttentionKernel = Kernel<Read<T>, Read<T>, Read<T>, Write<T>, ReadWrite<float>, AttentionStretch>;

/// Of `text` and `others`, in which a block of CUDA's takes 64 queries.
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

/// The same with a mask. No text of it uses tensor cores.
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
