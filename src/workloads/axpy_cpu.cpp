// Compiled once per instruction set by Highway, and chosen at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "axpy_cpu.cpp"
#include <hwy/foreach_target.h>
// After foreach_target:
#include <hwy/highway.h>

#include "axpy_cpu.hpp"
#include "steps.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void axpy(float a, const float* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t n) {
  const hn::ScalableTag<float> d;
  const std::size_t step = hn::Lanes(d);
  const auto factor = hn::Set(d, a);
  std::size_t i = 0;
  for (; i + step <= n; i += step)
    hn::StoreU(hn::MulAdd(factor, hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  const hn::CappedTag<float, 1> one;
  for (; i < n; ++i)
    hn::Store(hn::MulAdd(hn::Set(one, a), hn::Load(one, x + i), hn::Load(one, y + i)), one, y + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {

HWY_EXPORT(axpy);

void axpy(Range range, float a, std::span<const float> x, std::span<float> y) {
  const Range items = below(range, y.size());
  HWY_DYNAMIC_DISPATCH(axpy)(a, x.data() + items.first, y.data() + items.first, items.size());
}

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
