#include "per_target.hpp"

#include "cpu.hpp"
#include "exponential.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Source of the tail:
/// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V normal_distribution(D d, V x) {
  const V one = hn::Set(d, 1.0f), t = hn::Div(one, hn::MulAdd(hn::Set(d, 0.23164190f), hn::Abs(x), one));
  V tail = hn::MulAdd(hn::Set(d, 0.53070271f), t, hn::Set(d, -0.72657601f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.71070687f));
  tail = hn::MulAdd(tail, t, hn::Set(d, -0.14224837f));
  tail = hn::MulAdd(tail, t, hn::Set(d, 0.12741480f));
  tail = hn::Mul(hn::Mul(tail, t), exponential(d, hn::Mul(hn::Mul(x, hn::Set(d, -0.5f)), x)));
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
}
template <class D, class V = hn::Vec<D>>
HWY_INLINE V logistic(D d, V x) {
  const V one = hn::Set(d, 1.0f), below = exponential(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), below, one), hn::Add(one, below));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V activated(D d, V x, Activation activation) {
  const V zero = hn::Zero(d);
  V gate;
  switch (activation) {
    case Activation::relu: return hn::IfThenElse(hn::Lt(x, zero), zero, x);
    case Activation::gelu: gate = normal_distribution(d, x); break;
    case Activation::gelu_tanh: {
      const V cube = hn::Mul(hn::Mul(hn::Set(d, 0.044715f), hn::Mul(x, x)), x);
      gate = logistic(d, hn::Mul(hn::Set(d, 1.59576912f), hn::Add(cube, x)));
      break;
    }
    case Activation::silu: gate = logistic(d, x); break;
    default: return x;
  }
  return hn::IfThenElse(hn::Eq(gate, zero), zero, hn::Mul(x, gate));
}

/// Finishes elements of a row from `i` on. Returns the first for which no vector is left.
template <class D>
std::size_t finish_row(D d, const BlockEpilogue& block, const float* residual, float* c, std::size_t i) {
  const auto scale = hn::Set(d, block.scale);
  for (; i + hn::Lanes(d) <= block.columns; i += hn::Lanes(d)) {
    auto x = hn::Mul(hn::LoadU(d, c + i), scale);
    if (block.bias) x = hn::Add(x, hn::LoadU(d, block.bias + i));
    x = activated(d, x, block.activation);
    if (residual) x = hn::Add(x, hn::LoadU(d, residual + i));
    hn::StoreU(x, d, c + i);
  }
  return i;
}

void finish_block(const BlockEpilogue& block) {
  for (std::size_t r = 0; r < block.rows; ++r) {
    float* const c = block.c + r * block.c_step;
    const float* const residual = block.residual ? block.residual + r * block.c_step : nullptr;
    const std::size_t done = finish_row(hn::ScalableTag<float>(), block, residual, c, 0);
    finish_row(hn::CappedTag<float, 1>(), block, residual, c, done);
  }
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(finish_block);

}  // namespace

void finish(const BlockEpilogue& block) {
  if (block.bias || block.residual || block.scale != 1 || block.activation != Activation::none)
    HWY_DYNAMIC_DISPATCH(finish_block)(block);
}

}  // namespace wye::workloads::cpu
#endif
