#include "per_target.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "blocks.hpp"
#include "cpu.hpp"
#include "keys.hpp"
#include "partials.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class T = hn::TFromD<D>>
std::size_t sum_part(D d, const T* HWY_RESTRICT x, std::size_t i, std::size_t n, T& sum) {
  return add_up(d, i, n, sum,
                [&](hn::Vec<D>& part, std::size_t k) HWY_ATTR { part = hn::Add(part, hn::LoadU(d, x + k)); });
}

template <class T>
T sum_of(const T* x, std::size_t n) {
  T sum = 0;
  const std::size_t done = sum_part(hn::ScalableTag<T>(), x, 0, n, sum);
  sum_part(hn::CappedTag<T, 1>(), x, done, n, sum);
  return sum;
}
float sum_of_floats(const float* x, std::size_t n) { return sum_of(x, n); }
std::uint32_t sum_of_words(const std::uint32_t* x, std::size_t n) { return sum_of(x, n); }
std::uint64_t sum_of_longs(const std::uint64_t* x, std::size_t n) { return sum_of(x, n); }

template <class D, class T, class Key = hn::TFromD<D>>
std::size_t largest_part(D d, const T* x, std::size_t i, std::size_t n, Key flip, Key& largest) {
  const auto flips = hn::Set(d, flip);
  return find_largest(d, i, n, largest,
                      [&](std::size_t k) HWY_ATTR { return hn::Xor(flips, keys_at(d, x + k)); });
}

/// Returns the first place from `i` on with `key`. If none of the vectors has it, returns their
/// end.
template <class D, class T, class Key = hn::TFromD<D>>
std::size_t find_part(D d, const T* x, std::size_t i, std::size_t n, Key key) {
  const auto wanted = hn::Set(d, key);
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto found = hn::FindFirstTrue(d, hn::Eq(keys_at(d, x + i), wanted));
    if (found >= 0) return i + static_cast<std::size_t>(found);
  }
  return i;
}

/// Returns the place of the first element with the largest key. Finds the first block of 1024
/// elements that has it, then its place in the block: that is cheaper than a place in each lane.
template <class Key, class T>
std::size_t first_largest(const T* x, std::size_t n, Key flip) {
  constexpr std::size_t block = 1024;
  const hn::ScalableTag<Key> d;
  const hn::CappedTag<Key, 1> one;
  Key largest = 0;
  std::size_t first = 0;
  for (std::size_t i = 0; i < n; i += block) {
    const std::size_t last = std::min(n, i + block);
    Key of_block = 0;
    const std::size_t rest = largest_part(d, x, i, last, flip, of_block);
    largest_part(one, x, rest, last, flip, of_block);
    if (of_block > largest) largest = of_block, first = i;
  }
  const auto key = static_cast<Key>(largest ^ flip);
  const std::size_t last = std::min(n, first + block);
  return find_part(one, x, find_part(d, x, first, last, key), last, key);
}
std::size_t largest_float(const float* x, std::size_t n, std::uint32_t flip) {
  return first_largest(x, n, flip);
}
std::size_t largest_half(const half* x, std::size_t n, std::uint32_t flip) {
  return first_largest(x, n, flip);
}
std::size_t largest_bfloat16(const bfloat16* x, std::size_t n, std::uint32_t flip) {
  return first_largest(x, n, flip);
}
std::size_t largest_word(const std::uint32_t* x, std::size_t n, std::uint32_t flip) {
  return first_largest(x, n, flip);
}
std::size_t largest_long(const std::uint64_t* x, std::size_t n, std::uint32_t flip) {
  return first_largest(x, n, wide_flip<std::uint64_t>(flip));
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(sum_of_floats);
HWY_EXPORT(sum_of_words);
HWY_EXPORT(sum_of_longs);
HWY_EXPORT(largest_float);
HWY_EXPORT(largest_half);
HWY_EXPORT(largest_bfloat16);
HWY_EXPORT(largest_word);
HWY_EXPORT(largest_long);

template <class T>
requires std::is_same_v < SumOf<T>,
float > float sum_of(std::span<const T> x) {
  float wide[float_block];
  return sum_of_blocks(x.size(), [&](std::size_t i, std::size_t n) {
    return HWY_DYNAMIC_DISPATCH(sum_of_floats)(as_floats(x.data() + i, n, wide), n);
  });
}
std::uint32_t sum_of(std::span<const std::uint32_t> x) {
  return HWY_DYNAMIC_DISPATCH(sum_of_words)(x.data(), x.size());
}
std::int32_t sum_of(std::span<const std::int32_t> x) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(x.data());
  return static_cast<std::int32_t>(HWY_DYNAMIC_DISPATCH(sum_of_words)(words, x.size()));
}
std::uint64_t sum_of(std::span<const std::uint64_t> x) {
  return HWY_DYNAMIC_DISPATCH(sum_of_longs)(x.data(), x.size());
}

std::size_t largest_in(std::span<const float> x, std::uint32_t flip) {
  return HWY_DYNAMIC_DISPATCH(largest_float)(x.data(), x.size(), flip);
}
std::size_t largest_in(std::span<const half> x, std::uint32_t flip) {
  return HWY_DYNAMIC_DISPATCH(largest_half)(x.data(), x.size(), flip);
}
std::size_t largest_in(std::span<const bfloat16> x, std::uint32_t flip) {
  return HWY_DYNAMIC_DISPATCH(largest_bfloat16)(x.data(), x.size(), flip);
}
std::size_t largest_in(std::span<const std::uint32_t> x, std::uint32_t flip) {
  return HWY_DYNAMIC_DISPATCH(largest_word)(x.data(), x.size(), flip);
}
std::size_t largest_in(std::span<const std::int32_t> x, std::uint32_t flip) {
  const auto* const words = reinterpret_cast<const std::uint32_t*>(x.data());
  return HWY_DYNAMIC_DISPATCH(largest_word)(words, x.size(), flip);
}
std::size_t largest_in(std::span<const std::uint64_t> x, std::uint32_t flip) {
  return HWY_DYNAMIC_DISPATCH(largest_long)(x.data(), x.size(), flip);
}

}  // namespace

template <class T>
void reduce_sum(Range range, std::span<const T> x, std::span<SumOf<T>> sums, RowSplit split) {
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    sums[number] = sum_of(x.subspan(p.first, p.size));
  }
}

template <class T>
void reduce_extreme(Range range, std::span<const T> x, std::span<const std::uint32_t> candidates,
                    std::span<T> values, std::span<std::uint32_t> places, RowSplit split,
                    std::uint32_t columns, std::uint32_t flip) {
  std::vector<T> selected;
  for (std::uint64_t number : pieces_of(range, split)) {
    const Piece p = piece(number, split);
    const std::span<const T> row = x.subspan(p.row * columns, columns);
    std::uint64_t place = 0;
    if (candidates.empty()) {
      const std::uint64_t first = p.first - p.row * columns;
      place = first + largest_in(row.subspan(first, p.size), flip);
    } else {
      const auto of_row = candidates.subspan(p.first, p.size);
      selected.resize(p.size);
      std::transform(of_row.begin(), of_row.end(), selected.begin(), [&](std::uint32_t k) { return row[k]; });
      place = of_row[largest_in(selected, flip)];
    }
    if (!places.empty()) places[number] = static_cast<std::uint32_t>(place);
    if (!values.empty()) values[number] = row[place];
  }
}

#define WYE_REDUCE(T)                                                                                   \
  template void reduce_sum(Range, std::span<const T>, std::span<SumOf<T>>, RowSplit);                   \
  template void reduce_extreme(Range, std::span<const T>, std::span<const std::uint32_t>, std::span<T>, \
                               std::span<std::uint32_t>, RowSplit, std::uint32_t, std::uint32_t);
WYE_REDUCE(float)
WYE_REDUCE(half)
WYE_REDUCE(bfloat16)
WYE_REDUCE(std::int32_t)
WYE_REDUCE(std::uint32_t)
WYE_REDUCE(std::uint64_t)
#undef WYE_REDUCE

}  // namespace wye::workloads::cpu
#endif
