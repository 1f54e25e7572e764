// The exponential function for vectors. Included once per instruction set, as Highway's own headers
// are.
#if defined(WYE_WORKLOADS_EXPONENTIAL) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_EXPONENTIAL
#undef WYE_WORKLOADS_EXPONENTIAL
#else
#define WYE_WORKLOADS_EXPONENTIAL
#endif
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

/// Returns exp(v) for v <= 0, to about one unit in the last place: exactly 1 for 0, 0 below -87.7,
/// NaN for NaN. Takes a third of the time of Highway's Exp, which supports all numbers. Source:
/// Cephes' expf (Moshier). The polynomial has degree 6, begins with 1 + r and minimizes the largest
/// relative error in |r| <= ln 2 / 2 (3.2e-9, by Remez exchange).
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exponential(D d, V v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> whole;
  // From here down, 2^n has the exponent 0 and is 0. A NaN is kept, which Max does not guarantee.
  const V lowest = hn::Set(d, -88.0f);
  v = hn::IfThenElse(hn::Lt(v, lowest), lowest, v);
  // n = v / ln 2, rounded: adding 1.5 * 2^23 leaves no place for a fraction, and n + 127 in the low
  // bits.
  const V place = hn::Set(d, 0x1.8p23f + 127.0f);
  const V shifted = hn::MulAdd(v, hn::Set(d, 1.44269504f), place);
  const V n = hn::Sub(shifted, place);
  // The remainder v - n ln 2; the product is subtracted in two parts.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), v);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 0.0013824598f);
  p = hn::MulAdd(p, r, hn::Set(d, 0.008368777f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.04166821f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.1666652f));
  p = hn::MulAdd(p, r, hn::Set(d, 0.49999994f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(whole, shifted))));
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
