// Keys of vectors of elements. Included once per instruction set, as Highway's own headers are.
#if defined(WYE_WORKLOADS_KEYS) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_KEYS
#undef WYE_WORKLOADS_KEYS
#else
#define WYE_WORKLOADS_KEYS
#endif
#include <hwy/highway.h>
#include <wye/base/half.hpp>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {

/// Loads elements as bits: elements of 16 bits are the upper half of a word.
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> bits_at(D d, const float* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::BitCast(d, hn::LoadU(hn::Rebind<float, D>(), from));
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> bits_at(D d, const std::uint16_t* from) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint16_t, D>(), from)));
}

/// Return the keys of elements, as `shaders/include/elements.cuh` does.
template <class D, class T>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> float_keys(D d, const T* from, std::uint32_t infinity) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> ints;
  const auto bits = bits_at(d, from), size = hn::And(bits, hn::Set(d, 0x7fff'ffffu)),
             zero = hn::Set(d, 0x8000'0000u);
  const auto is_nan = hn::Gt(hn::BitCast(ints, size), hn::Set(ints, static_cast<std::int32_t>(infinity)));
  const auto is_negative = hn::Lt(hn::BitCast(ints, bits), hn::Zero(ints));
  const auto key = hn::IfThenElse(hn::RebindMask(d, is_negative), hn::Sub(zero, size), hn::Add(zero, size));
  return hn::IfThenElse(hn::RebindMask(d, is_nan), hn::Set(d, ~0u), key);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> keys_at(D d, const float* from) {
  return float_keys(d, from, 0x7f80'0000u);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> keys_at(D d, const half* from) {
  return float_keys(d, reinterpret_cast<const std::uint16_t*>(from), 0x7c00'0000u);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> keys_at(D d, const bfloat16* from) {
  return float_keys(d, reinterpret_cast<const std::uint16_t*>(from), 0x7f80'0000u);
}
template <class D>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> keys_at(D d, const hwy::HWY_NAMESPACE::TFromD<D>* from) {
  return hwy::HWY_NAMESPACE::LoadU(d, from);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
