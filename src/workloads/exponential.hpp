// The exponential function for vectors. Included once per instruction set, as Highway's own headers are.
#if defined(WYE_WORKLOADS_EXPONENTIAL) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_EXPONENTIAL
#undef WYE_WORKLOADS_EXPONENTIAL
#else
#define WYE_WORKLOADS_EXPONENTIAL
#endif
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {

/// exp(v) for v <= 0, to about one unit in the last place; 0 below -87, where floats end; NaN of NaN.
/// Half the work of Highway's Exp, which is made for all numbers.
/// Source: expf of Cephes, Moshier.
template <class D, class V = hwy::HWY_NAMESPACE::Vec<D>>
HWY_INLINE V exponential(D d, V v) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> whole;
  // n = v / ln 2, rounded: adding 1.5 * 2^23 leaves no place for a fraction, and n in the low bits.
  const V shifted = hn::MulAdd(v, hn::Set(d, 1.44269504f), hn::Set(d, 0x1.8p23f));
  const V n = hn::Sub(shifted, hn::Set(d, 0x1.8p23f));
  // What is left of v beside n ln 2, which is taken away in two parts.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), v);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.9875691500e-4f);
  p = hn::MulAdd(p, r, hn::Set(d, 1.3981999507e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3f));
  p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  const V e = hn::BitCast(d, hn::Add(hn::BitCast(whole, p), hn::ShiftLeft<23>(hn::BitCast(whole, shifted))));
  return hn::IfThenElse(hn::IsNaN(v), v, hn::IfThenZeroElse(hn::Lt(v, hn::Set(d, -87.0f)), e));
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
HWY_AFTER_NAMESPACE();
#endif
