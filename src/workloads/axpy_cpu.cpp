#include "per_target.hpp"

#include "cpu.hpp"
#include "steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Returns a x + y. Without a fused instruction, the product is rounded separately. Products of
/// quarters overflow only if the sum does.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V multiple_added([[maybe_unused]] D d, V a, V x, V y) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, x, y);
#else
  const V product = hn::Mul(a, x), quarter = hn::Set(d, 0.25f);
  const V scaled = hn::Mul(hn::Add(hn::Mul(a, hn::Mul(x, quarter)), hn::Mul(y, quarter)), hn::Set(d, 4.0f));
  return hn::IfThenElse(hn::Le(hn::Abs(product), hn::Set(d, 0x1.fffffep127f)), hn::Add(product, y), scaled);
#endif
}

template <class D>
std::size_t add_multiple(D d, float a, const float* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t i,
                         std::size_t n) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(multiple_added(d, hn::Set(d, a), hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  return i;
}

void axpy(float a, const float* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t n) {
  const std::size_t done = add_multiple(hn::ScalableTag<float>(), a, x, y, 0, n);
  add_multiple(hn::CappedTag<float, 1>(), a, x, y, done, n);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(axpy);

void axpy(Range range, float a, std::span<const float> x, std::span<float> y) {
  const Range items = below(range, y.size());
  HWY_DYNAMIC_DISPATCH(axpy)(a, x.data() + items.first, y.data() + items.first, items.size());
}

}  // namespace wye::workloads::cpu
#endif
