// Loads and transposes squares of 4 x 4. Included once per instruction set, as Highway's own
// headers are.
#if defined(WYE_WORKLOADS_TRANSPOSED_LOADS) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_TRANSPOSED_LOADS
#undef WYE_WORKLOADS_TRANSPOSED_LOADS
#else
#define WYE_WORKLOADS_TRANSPOSED_LOADS
#endif
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR
/// Returns four elements of every fourth row, which are `step` apart.
template <class D, class T>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_every_fourth(D d, const T* from, std::size_t step) {
  namespace hn = hwy::HWY_NAMESPACE;
  constexpr std::size_t lanes = hn::MaxLanes(D());
  if constexpr (lanes == 4) {
    return hn::LoadU(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, load_every_fourth(half, from + lanes / 2 * step, step),
                       load_every_fourth(half, from, step));
  }
}
#endif

/// Loads four elements of as many rows as a vector has lanes, `step` apart. Sets `columns[k]` to
/// element k of each row.
template <class D, class T, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE void load_columns(D d, const T* from, [[maybe_unused]] std::size_t step, V* HWY_RESTRICT columns) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  for (std::size_t k = 0; k < 4; ++k) columns[k] = hn::LoadU(d, from + k);
#else
  const V r0 = load_every_fourth(d, from, step), r1 = load_every_fourth(d, from + step, step),
          r2 = load_every_fourth(d, from + 2 * step, step), r3 = load_every_fourth(d, from + 3 * step, step);
  const V even_low = hn::InterleaveLower(d, r0, r2), odd_low = hn::InterleaveLower(d, r1, r3);
  const V even_high = hn::InterleaveUpper(d, r0, r2), odd_high = hn::InterleaveUpper(d, r1, r3);
  columns[0] = hn::InterleaveLower(d, even_low, odd_low);
  columns[1] = hn::InterleaveUpper(d, even_low, odd_low);
  columns[2] = hn::InterleaveLower(d, even_high, odd_high);
  columns[3] = hn::InterleaveUpper(d, even_high, odd_high);
#endif
}

/// Fetches elements of these rows that `load_columns` will load four lines later. `i` is the first
/// element that it loads now, a multiple of four; four such calls fetch a line of each row.
template <class D, class T>
HWY_INLINE void fetch_ahead(D, const T* row, std::size_t step, std::size_t i) {
  constexpr std::size_t lines = hwy::HWY_NAMESPACE::MaxLanes(D()) / 4, distance = 256 / sizeof(T);
  for (std::size_t line = 0; line < lines; ++line)
    hwy::Prefetch(row + (i / 4 % 4 * lines + line) * step + i + distance);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
