// Partial results of a loop over a vector. Included once per instruction set, as Highway's own
// headers are.
#if defined(WYE_WORKLOADS_PARTIALS) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_PARTIALS
#undef WYE_WORKLOADS_PARTIALS
#else
#define WYE_WORKLOADS_PARTIALS
#endif
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

/// Calls `add(part, k)` for each whole vector of the elements from `i` to `n`, with k its first
/// element. Four parts, which begin as `start`, do not wait for each other. Sets `all` to the
/// parts, combined in pairs by `combine(a, b)`. Returns the first element that belongs to no whole
/// vector.
template <class D, class Add, class Combine, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE std::size_t four_partials(D d, std::size_t i, std::size_t n, V start, V& all, Add add,
                                     Combine combine) {
  const std::size_t lanes = hwy::HWY_NAMESPACE::Lanes(d);
  V p0 = start, p1 = start, p2 = start, p3 = start;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    add(p0, i);
    add(p1, i + lanes);
    add(p2, i + 2 * lanes);
    add(p3, i + 3 * lanes);
  }
  for (; i + lanes <= n; i += lanes) add(p0, i);
  all = combine(combine(p0, p1), combine(p2, p3));
  return i;
}

/// Adds up vectors: `add(part, k)` is as above. Adds the sum of their lanes to `sum`.
template <class D, class Add, class T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE std::size_t add_up(D d, std::size_t i, std::size_t n, T& sum, Add add) {
  namespace hn = hwy::HWY_NAMESPACE;
  auto all = hn::Zero(d);
  i = four_partials(d, i, n, all, all, add,
                    [](hn::Vec<D> a, hn::Vec<D> b) HWY_ATTR { return hn::Add(a, b); });
  sum += hn::GetLane(hn::SumOfLanes(d, all));
  return i;
}

/// Finds the largest lane of the vectors `at(k)`, at least `largest`, and sets it.
template <class D, class At, class T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE std::size_t find_largest(D d, std::size_t i, std::size_t n, T& largest, At at) {
  namespace hn = hwy::HWY_NAMESPACE;
  auto all = hn::Set(d, largest);
  i = four_partials(
      d, i, n, all, all, [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR { part = hn::Max(at(k), part); },
      [](hn::Vec<D> a, hn::Vec<D> b) HWY_ATTR { return hn::Max(a, b); });
  largest = hn::GetLane(hn::MaxOfLanes(d, all));
  return i;
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
