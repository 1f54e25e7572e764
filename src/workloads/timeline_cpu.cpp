#include "per_target.hpp"

#include "cpu.hpp"
#include "exponential.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Treats both structs as four floats. The category is copied without arithmetic.
template <class D>
std::size_t place_part(D d, const float* from, float* to, std::size_t i, std::size_t n, float now,
                       float decay) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::Vec<D> timestamp, importance, category, relevance;
    hn::LoadInterleaved4(d, from + 4 * i, timestamp, importance, category, relevance);
    const auto x = hn::Mul(hn::Set(d, decay), hn::Abs(hn::Sub(hn::Set(d, now), timestamp)));
    const auto faded = hn::Mul(importance, exponential(d, hn::Neg(x)));
    const auto gone = hn::And(hn::Gt(x, hn::Set(d, 87.0f)), hn::Eq(importance, importance));
    hn::StoreInterleaved4(timestamp, hn::IfThenZeroElse(gone, faded), relevance, category, d, to + 4 * i);
  }
  return i;
}

void place(const float* from, float* to, std::size_t n, float now, float decay) {
  const std::size_t done = place_part(hn::ScalableTag<float>(), from, to, 0, n, now, decay);
  place_part(hn::CappedTag<float, 1>(), from, to, done, n, now, decay);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(place);

void timeline(Range range, std::span<const Evidence> evidence, std::span<TimelinePoint> points, float now,
              float decay) {
  static_assert(sizeof(Evidence) == 4 * sizeof(float) && sizeof(TimelinePoint) == 4 * sizeof(float));
  const Range items = below(range, points.size());
  HWY_DYNAMIC_DISPATCH(place)
  (reinterpret_cast<const float*>(evidence.data() + items.first),
   reinterpret_cast<float*>(points.data() + items.first), items.size(), now, decay);
}

}  // namespace wye::workloads::cpu
#endif
