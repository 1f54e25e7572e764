// The distribution of elements to buckets by their keys. Included once per instruction set, as Highway's own headers are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "keys.hpp"

#ifndef WYE_WORKLOADS_BUCKETS
#define WYE_WORKLOADS_BUCKETS
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
constexpr std::size_t buckets = 256;

/// The number of adjacent buckets that are sorted at once. Without values, Highway's vqsort sorts larger ones as well.
constexpr std::size_t buckets_at_once(bool has_values) { return has_values ? 1 : 4; }

/// Elements that are moved to buckets. The limits of buckets are their least keys; the first one has none.
template <class T, class Key>
struct Distribution {
  const T* keys;
  const std::uint32_t* values;  ///< if null, the values are the columns from `column` on
  std::uint32_t column;
  std::size_t size;
  Key flip;
  const Key* limits;
  T* keys_to;
  std::uint32_t* values_to;  ///< null: there are no values
  T* some_keys;              ///< memory for 3 * size elements
  std::uint32_t* some_values;
};

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif

#if defined(WYE_WORKLOADS_DISTRIBUTION) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_DISTRIBUTION
#undef WYE_WORKLOADS_DISTRIBUTION
#else
#define WYE_WORKLOADS_DISTRIBUTION
#endif

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Load and store elements as bits, and their values, in lanes of the width of keys.
template <class D, class T>
HWY_INLINE hn::Vec<D> elements_at(D d, const T* from) {
  if constexpr (std::is_same_v<T, float>)
    return bits_at(d, from);
  else if constexpr (sizeof(T) == 2)
    return bits_at(d, reinterpret_cast<const std::uint16_t*>(from));
  else
    return hn::LoadU(d, from);
}
template <class D, class T>
HWY_INLINE void store_elements([[maybe_unused]] D d, hn::Vec<D> bits, T* to) {
  if constexpr (sizeof(T) == 2) {
    const hn::Rebind<std::uint16_t, D> halves;
    hn::StoreU(hn::TruncateTo(halves, hn::ShiftRight<16>(bits)), halves,
               reinterpret_cast<std::uint16_t*>(to));
  } else {
    const hn::Rebind<T, D> same;
    hn::StoreU(hn::BitCast(same, bits), same, to);
  }
}
template <class D>
HWY_INLINE hn::Vec<D> values_at(D d, const std::uint32_t* from) {
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<std::uint32_t, D>(), from));
}
template <class D>
HWY_INLINE void store_values(D d, hn::Vec<D> values, std::uint32_t* to) {
  const hn::Rebind<std::uint32_t, D> words;
  if constexpr (sizeof(hn::TFromD<D>) == 4)
    hn::StoreU(values, d, to);
  else
    hn::StoreU(hn::TruncateTo(words, values), words, to);
}

/// Moves elements from `i` on to the ends of four parts, between which `limits` are. Their order stays. Stores whole vectors, of
/// which each part has place for as many elements as were read.
template <bool has_values, class D, class T, class Key = hn::TFromD<D>>
std::size_t distribute_part(D d, const Distribution<T, Key>& from, std::size_t i, const Key* limits,
                            T** keys_to, std::uint32_t** values_to) {
  const auto flips = hn::Set(d, from.flip), limit_1 = hn::Set(d, limits[0]), limit_2 = hn::Set(d, limits[1]),
             limit_3 = hn::Set(d, limits[2]);
  const T* const x = from.keys;
  const std::size_t size = from.size;
  for (; i + hn::Lanes(d) <= size; i += hn::Lanes(d)) {
    const auto keys = hn::Xor(flips, keys_at(d, x + i)), elements = elements_at(d, x + i);
    auto values = elements;
    if constexpr (has_values)
      values = from.values != nullptr ? values_at(d, from.values + i)
                                      : hn::Iota(d, static_cast<Key>(from.column + i));
    const auto below_1 = hn::Lt(keys, limit_1), below_2 = hn::Lt(keys, limit_2),
               below_3 = hn::Lt(keys, limit_3);
    const auto move = [&](std::size_t part, auto is_of_part) HWY_ATTR {
      const std::size_t count = hn::CountTrue(d, is_of_part);
      store_elements(d, hn::Compress(elements, is_of_part), keys_to[part]);
      keys_to[part] += count;
      if constexpr (has_values) {
        store_values(d, hn::Compress(values, is_of_part), values_to[part]);
        values_to[part] += count;
      }
    };
    move(0, below_1);
    move(1, hn::AndNot(below_1, below_2));
    move(2, hn::AndNot(below_2, below_3));
    move(3, hn::Not(below_3));
  }
  return i;
}

/// Moves elements to parts, one after the other: by four, as a vector has few elements for each of more parts, and as writing
/// to many places is slow. The order of the elements of a part stays.
template <bool has_values, class T, class Key>
void distribute(const Distribution<T, Key>& from, std::size_t parts) {
  if (from.size == 0) return;
  const std::size_t quarter = parts / 4;
  const Key limits[] = {from.limits[quarter], from.limits[2 * quarter], from.limits[3 * quarter]};
  T* keys[] = {from.keys_to, from.some_keys, from.some_keys + from.size, from.some_keys + 2 * from.size};
  std::uint32_t* values[4] = {};
  if constexpr (has_values)
    for (std::size_t part = 0; part < 4; ++part)
      values[part] = part == 0 ? from.values_to : from.some_values + (part - 1) * from.size;
  const std::size_t done = distribute_part<has_values>(hn::ScalableTag<Key>(), from, 0, limits, keys, values);
  distribute_part<has_values>(hn::CappedTag<Key, 1>(), from, done, limits, keys, values);

  std::size_t sizes[] = {static_cast<std::size_t>(keys[0] - from.keys_to), 0, 0, 0};
  for (std::size_t part = 1; part < 4; ++part) {
    const std::size_t first = (part - 1) * from.size;
    sizes[part] = static_cast<std::size_t>(keys[part] - (from.some_keys + first));
    keys[0] = std::copy_n(from.some_keys + first, sizes[part], keys[0]);
    if constexpr (has_values) values[0] = std::copy_n(from.some_values + first, sizes[part], values[0]);
  }
  if (quarter == buckets_at_once(has_values)) return;
  Distribution<T, Key> part = from;
  for (const std::size_t size : sizes) {
    part.keys = part.keys_to, part.values = part.values_to, part.size = size;
    distribute<has_values>(part, quarter);
    part.keys_to += size, part.limits += quarter;
    if constexpr (has_values) part.values_to += size;
  }
}

template <class T, class Key>
void distribute(const Distribution<T, Key>& from) {
  if (from.values_to != nullptr)
    distribute<true>(from, buckets);
  else
    distribute<false>(from, buckets);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
HWY_AFTER_NAMESPACE();

#endif
