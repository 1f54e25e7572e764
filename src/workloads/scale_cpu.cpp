#include "per_target.hpp"

#include <algorithm>
#include <cstring>

#include "blocks.hpp"
#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
std::size_t scale_part(D d, T* x, std::size_t i, std::size_t n, T factor) {
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d))
    hn::StoreU(hn::Mul(hn::LoadU(d, x + i), hn::Set(d, factor)), d, x + i);
  return i;
}
template <class T>
void scale_vectors(T* x, std::size_t n, T factor) {
  const std::size_t done = scale_part(hn::ScalableTag<T>(), x, 0, n, factor);
  scale_part(hn::CappedTag<T, 1>(), x, done, n, factor);
}
void scale_floats(float* x, std::size_t n, float factor) { scale_vectors(x, n, factor); }
void scale_words(std::uint32_t* x, std::size_t n, std::uint32_t factor) { scale_vectors(x, n, factor); }

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(scale_floats);
HWY_EXPORT(scale_words);

void multiply_by(std::span<float> x, float factor) {
  HWY_DYNAMIC_DISPATCH(scale_floats)(x.data(), x.size(), factor);
}
/// Elements of 16 bits: products are exact in float32, and rounded once.
template <class T>
void multiply_by(std::span<T> x, T factor) {
  float wide[float_block];
  for (std::size_t i = 0; i < x.size(); i += float_block) {
    const std::size_t n = std::min(float_block, x.size() - i);
    widen(x.data() + i, 1, n, n, wide);
    multiply_by(std::span(wide, n), static_cast<float>(factor));
    narrow({wide, n}, x.data() + i);
  }
}
void multiply_by(std::span<std::uint32_t> x, std::uint32_t factor) {
  HWY_DYNAMIC_DISPATCH(scale_words)(x.data(), x.size(), factor);
}
void multiply_by(std::span<std::int32_t> x, std::int32_t factor) {
  HWY_DYNAMIC_DISPATCH(scale_words)
  (reinterpret_cast<std::uint32_t*>(x.data()), x.size(), static_cast<std::uint32_t>(factor));
}
/// Highway has no products of 64 bits.
void multiply_by(std::span<std::uint64_t> x, std::uint64_t factor) {
  for (std::uint64_t& element : x) element *= factor;
}

}  // namespace

template <class T>
void scale(Range range, std::span<const T> factors, std::span<T> x, RowSplit split, ScaleFactor a) {
  T factor;
  std::memcpy(static_cast<void*>(&factor), &a, sizeof factor);
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    multiply_by(x.subspan(p.first, p.size), factors.empty() ? factor : factors[p.row]);
  }
}
#define WYE_SCALE(T) template void scale(Range, std::span<const T>, std::span<T>, RowSplit, ScaleFactor);
WYE_SCALE(float)
WYE_SCALE(half)
WYE_SCALE(bfloat16)
WYE_SCALE(std::int32_t)
WYE_SCALE(std::uint32_t)
WYE_SCALE(std::uint64_t)
#undef WYE_SCALE

}  // namespace wye::workloads::cpu
#endif
