#include "per_target.hpp"

#include <algorithm>

#include "blocks.hpp"
#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Operations on a vector of at most 128 bits: its prefix sums, the same from zero on, and its last
/// lane in all lanes.
#if HWY_TARGET == HWY_SCALAR
template <class D>
hn::Vec<D> sums_upto(D, hn::Vec<D> v) {
  return v;
}
template <class D>
hn::Vec<D> moved_up(D d, hn::Vec<D>) {
  return hn::Zero(d);
}
template <class D>
hn::Vec<D> last_of(D, hn::Vec<D> v) {
  return v;
}
#else
template <class D>
hn::Vec<D> sums_upto(D d, hn::Vec<D> v) {
  v = hn::Add(v, hn::ShiftLeftLanes<1>(d, v));
  if constexpr (hn::MaxLanes(D()) > 2) v = hn::Add(v, hn::ShiftLeftLanes<2>(d, v));
  return v;
}
template <class D>
hn::Vec<D> moved_up(D d, hn::Vec<D> v) {
  return hn::ShiftLeftLanes<1>(d, v);
}
template <class D>
hn::Vec<D> last_of(D, hn::Vec<D> v) {
  return hn::Broadcast<hn::MaxLanes(D()) - 1>(v);
}
#endif

/// Computes prefix sums of `n` elements, plus `total`, to which it adds their sum. `to` may be `x`.
/// The sums of vectors of 128 bits are added one after the other in blocks of 256 elements, and
/// those of blocks in `Total`: that bounds the rounding error.
template <bool exclusive, class T, class Total>
void prefix_sums(const T* x, T* to, std::size_t n, Total& total) {
  constexpr std::size_t block = 256;
  const hn::CappedTag<T, 16 / sizeof(T)> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t i = 0; i < n;) {
    const std::size_t last = std::min(n, i + block);
    const T offset = static_cast<T>(total);
    const auto offsets = hn::Set(d, offset);
    auto before = hn::Zero(d);
    for (; i + lanes <= last; i += lanes) {
      const auto upto = sums_upto(d, hn::LoadU(d, x + i));
      auto own = upto;
      if constexpr (exclusive) own = moved_up(d, upto);
      hn::StoreU(hn::Add(hn::Add(own, before), offsets), d, to + i);
      before = hn::Add(before, last_of(d, upto));
    }
    T sum = hn::GetLane(before);
    for (; i < last; ++i) {
      const T upto = sum + x[i];
      to[i] = (exclusive ? sum : upto) + offset;
      sum = upto;
    }
    total += sum;
  }
}

template <class T, class Total>
void prefix_sums(const T* x, T* to, std::size_t n, Total& total, bool exclusive) {
  if (exclusive)
    prefix_sums<true>(x, to, n, total);
  else
    prefix_sums<false>(x, to, n, total);
}
void scan_floats(const float* x, float* to, std::size_t n, double& total, bool exclusive) {
  prefix_sums(x, to, n, total, exclusive);
}
void scan_words(const std::uint32_t* x, std::uint32_t* to, std::size_t n, std::uint32_t total,
                bool exclusive) {
  prefix_sums(x, to, n, total, exclusive);
}
void scan_longs(const std::uint64_t* x, std::uint64_t* to, std::size_t n, std::uint64_t total,
                bool exclusive) {
  prefix_sums(x, to, n, total, exclusive);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(scan_floats);
HWY_EXPORT(scan_words);
HWY_EXPORT(scan_longs);

template <class T>
void scan_piece(const T* x, float* to, std::size_t n, float offset, bool exclusive) {
  float wide[float_block];
  double total = offset;
  for (std::size_t i = 0; i < n; i += float_block) {
    const std::size_t count = std::min(float_block, n - i);
    HWY_DYNAMIC_DISPATCH(scan_floats)(as_floats(x + i, count, wide), to + i, count, total, exclusive);
  }
}
void scan_piece(const float* x, float* to, std::size_t n, float offset, bool exclusive) {
  double total = offset;
  HWY_DYNAMIC_DISPATCH(scan_floats)(x, to, n, total, exclusive);
}
void scan_piece(const std::uint32_t* x, std::uint32_t* to, std::size_t n, std::uint32_t offset,
                bool exclusive) {
  HWY_DYNAMIC_DISPATCH(scan_words)(x, to, n, offset, exclusive);
}
void scan_piece(const std::int32_t* x, std::int32_t* to, std::size_t n, std::int32_t offset, bool exclusive) {
  HWY_DYNAMIC_DISPATCH(scan_words)
  (reinterpret_cast<const std::uint32_t*>(x), reinterpret_cast<std::uint32_t*>(to), n,
   static_cast<std::uint32_t>(offset), exclusive);
}
void scan_piece(const std::uint64_t* x, std::uint64_t* to, std::size_t n, std::uint64_t offset,
                bool exclusive) {
  HWY_DYNAMIC_DISPATCH(scan_longs)(x, to, n, offset, exclusive);
}

}  // namespace

template <class T>
void scan(Range range, std::span<const T> x, std::span<const SumOf<T>> offsets, std::span<SumOf<T>> sums,
          RowSplit split, std::uint32_t exclusive) {
  if (split.columns == 0) return;
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const SumOf<T> offset = offsets.empty() ? SumOf<T>(0) : offsets[number];
    scan_piece(x.data() + p.first, sums.data() + p.first, p.size, offset, exclusive != 0);
  }
}

#define WYE_SCAN(T)                                                                                       \
  template void scan(Range, std::span<const T>, std::span<const SumOf<T>>, std::span<SumOf<T>>, RowSplit, \
                     std::uint32_t);
WYE_SCAN(float)
WYE_SCAN(half)
WYE_SCAN(bfloat16)
WYE_SCAN(std::int32_t)
WYE_SCAN(std::uint32_t)
WYE_SCAN(std::uint64_t)
#undef WYE_SCAN

}  // namespace wye::workloads::cpu
#endif
