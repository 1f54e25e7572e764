#include "per_target.hpp"

#include <algorithm>

#include "blocks.hpp"
#include "cpu.hpp"
#include "exponential.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Takes the exponential of -|gate|, which does not overflow. Gates below -87 count as their limit
/// -0.
template <class D>
std::size_t silu_part(D d, const float* gate, const float* up, float* to, std::size_t i, std::size_t n) {
  const auto one = hn::Set(d, 1.0f), lowest = hn::Set(d, -87.0f), zero = hn::Zero(d);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto v = hn::LoadU(d, gate + i);
    const auto e = exponential(d, hn::Neg(hn::Abs(v)));
    const auto share = hn::Div(hn::IfThenElse(hn::Lt(v, zero), e, one), hn::Add(one, e));
    const auto silu = hn::IfThenElse(hn::Lt(v, lowest), hn::Set(d, -0.0f), hn::Mul(v, share));
    hn::StoreU(hn::Mul(silu, hn::LoadU(d, up + i)), d, to + i);
  }
  return i;
}
void silu_products(const float* gate, const float* up, float* to, std::size_t n) {
  const std::size_t done = silu_part(hn::ScalableTag<float>(), gate, up, to, 0, n);
  silu_part(hn::CappedTag<float, 1>(), gate, up, to, done, n);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {

HWY_EXPORT(silu_products);

template <class T>
void silu_multiply(Range range, std::span<const T> gate, std::span<const T> up, std::span<T> result,
                   RowSplit split) {
  float wide_gate[float_block], wide_up[float_block], wide[float_block];
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    for (std::uint64_t i = p.first; i < p.first + p.size; i += float_block) {
      const std::size_t n = std::min<std::size_t>(float_block, p.first + p.size - i);
      float* const to = room_of_floats(result.data() + i, wide);
      HWY_DYNAMIC_DISPATCH(silu_products)
      (as_floats(gate.data() + i, n, wide_gate), as_floats(up.data() + i, n, wide_up), to, n);
      write_floats({to, n}, result.data() + i);
    }
  }
}
#define WYE_SILU(T) \
  template void silu_multiply(Range, std::span<const T>, std::span<const T>, std::span<T>, RowSplit);
WYE_SILU(float)
WYE_SILU(half)
WYE_SILU(bfloat16)
#undef WYE_SILU

}  // namespace wye::workloads::cpu
#endif
