#include "per_target.hpp"

#include <type_traits>

#include "blocks.hpp"
#include "cpu.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
std::size_t dot_part(D d, const T* x, const T* y, std::size_t i, std::size_t n, T& sum) {
  return add_up(d, i, n, sum, [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR {
    part = hn::MulAdd(hn::LoadU(d, x + k), hn::LoadU(d, y + k), part);
  });
}

template <class T>
T dot_of(const T* x, const T* y, std::size_t n) {
  T sum = 0;
  const std::size_t done = dot_part(hn::ScalableTag<T>(), x, y, 0, n, sum);
  dot_part(hn::CappedTag<T, 1>(), x, y, done, n, sum);
  return sum;
}
float dot_of_floats(const float* x, const float* y, std::size_t n) { return dot_of(x, y, n); }

/// Integers: Highway has no products of 64 bits. Four sums do not wait for each other.
template <class T>
T dot_of_integers(const T* x, const T* y, std::size_t n) {
  T sums[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4)
    for (std::size_t k = 0; k < 4; ++k) sums[k] += x[i + k] * y[i + k];
  for (; i < n; ++i) sums[0] += x[i] * y[i];
  return sums[0] + sums[1] + sums[2] + sums[3];
}
std::uint32_t dot_of_words(const std::uint32_t* x, const std::uint32_t* y, std::size_t n) {
  return dot_of_integers(x, y, n);
}
std::uint64_t dot_of_longs(const std::uint64_t* x, const std::uint64_t* y, std::size_t n) {
  return dot_of_integers(x, y, n);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(dot_of_floats);
HWY_EXPORT(dot_of_words);
HWY_EXPORT(dot_of_longs);

template <class T>
requires std::is_same_v < SumOf<T>,
float > float dot_of(std::span<const T> x, std::span<const T> y) {
  float wide_x[float_block], wide_y[float_block];
  return sum_of_blocks(x.size(), [&](std::size_t i, std::size_t n) {
    return HWY_DYNAMIC_DISPATCH(dot_of_floats)(as_floats(x.data() + i, n, wide_x),
                                               as_floats(y.data() + i, n, wide_y), n);
  });
}
std::uint32_t dot_of(std::span<const std::uint32_t> x, std::span<const std::uint32_t> y) {
  return HWY_DYNAMIC_DISPATCH(dot_of_words)(x.data(), y.data(), x.size());
}
std::int32_t dot_of(std::span<const std::int32_t> x, std::span<const std::int32_t> y) {
  const auto words = [](const std::int32_t* from) { return reinterpret_cast<const std::uint32_t*>(from); };
  return static_cast<std::int32_t>(
      HWY_DYNAMIC_DISPATCH(dot_of_words)(words(x.data()), words(y.data()), x.size()));
}
std::uint64_t dot_of(std::span<const std::uint64_t> x, std::span<const std::uint64_t> y) {
  return HWY_DYNAMIC_DISPATCH(dot_of_longs)(x.data(), y.data(), x.size());
}

}  // namespace

template <class T>
void dot(Range range, std::span<const T> x, std::span<const T> y, std::span<SumOf<T>> sums, RowSplit split) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    sums[number] = dot_of(x.subspan(p.first, p.size), y.subspan(p.first, p.size));
  }
}
#define WYE_DOT(T) \
  template void dot(Range, std::span<const T>, std::span<const T>, std::span<SumOf<T>>, RowSplit);
WYE_DOT(float)
WYE_DOT(half)
WYE_DOT(bfloat16)
WYE_DOT(std::int32_t)
WYE_DOT(std::uint32_t)
WYE_DOT(std::uint64_t)
#undef WYE_DOT

}  // namespace wye::workloads::cpu
#endif
