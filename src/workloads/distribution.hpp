// The distribution of elements to buckets by their keys. Included once per instruction set, as
// Highway's own headers are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "keys.hpp"

#ifndef WYE_WORKLOADS_BUCKETS
#define WYE_WORKLOADS_BUCKETS
namespace wye::inline v0::workloads::cpu {
constexpr std::size_t buckets = 256;

/// Adjacent buckets are a part, which is sorted at once. Returns the length of the part that begins
/// with `bucket`. Without values, Highway's vqsort sorts longer ones as well. The last parts are
/// shorter, so that threads end at about the same time.
constexpr std::size_t part_length(std::size_t bucket, bool has_values) {
  return has_values || bucket >= buckets / 4 * 3 ? 1 : 4;
}

/// Elements that are moved to buckets. The limits of buckets are their least keys; the first one
/// has none.
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

}  // namespace wye::workloads::cpu
#endif

#if defined(WYE_WORKLOADS_DISTRIBUTION) == defined(HWY_TARGET_TOGGLE)
#ifdef WYE_WORKLOADS_DISTRIBUTION
#undef WYE_WORKLOADS_DISTRIBUTION
#else
#define WYE_WORKLOADS_DISTRIBUTION
#endif

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Finds the parts of elements: the number of limits that their keys reach.
template <class D, class T, class Key = hn::TFromD<D>>
std::size_t parts_part(D d, const T* x, std::size_t i, std::size_t n, Key flip, const Key* limits,
                       Key* parts) {
  const auto flips = hn::Set(d, flip), limit_1 = hn::Set(d, limits[0]), limit_2 = hn::Set(d, limits[1]),
             limit_3 = hn::Set(d, limits[2]), three = hn::Set(d, Key{3});
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    const auto keys = hn::Xor(flips, keys_at(d, x + i));
    const auto minus_1 = hn::VecFromMask(d, hn::Lt(keys, limit_1)),
               minus_2 = hn::VecFromMask(d, hn::Lt(keys, limit_2)),
               minus_3 = hn::VecFromMask(d, hn::Lt(keys, limit_3));
    hn::StoreU(hn::Add(hn::Add(three, minus_1), hn::Add(minus_2, minus_3)), d, parts + i);
  }
  return i;
}

/// Moves elements from `i` on to the ends of four parts, between which `limits` are. Their order
/// stays.
template <bool has_values, class T, class Key>
void move_one_by_one(const Distribution<T, Key>& from, std::size_t i, const Key* limits, T** keys_to,
                     std::uint32_t** values_to) {
  constexpr std::size_t block = 512;
  Key parts[block];
  for (; i < from.size; i += block) {
    const T* const x = from.keys + i;
    const std::size_t count = std::min(block, from.size - i);
    const std::size_t done = parts_part(hn::ScalableTag<Key>(), x, 0, count, from.flip, limits, parts);
    parts_part(hn::CappedTag<Key, 1>(), x, done, count, from.flip, limits, parts);
    for (std::size_t k = 0; k < count; ++k) {
      const auto part = static_cast<std::size_t>(parts[k]);
      *keys_to[part]++ = x[k];
      if constexpr (has_values)
        *values_to[part]++ =
            from.values != nullptr ? from.values[i + k] : from.column + static_cast<std::uint32_t>(i + k);
    }
  }
}

#if HWY_TARGET == HWY_AVX2
/// For each mask, the lanes that it has. hn::Compress has such a table, which g++ 12 copies to the
/// stack at each use.
struct MaskLanes {
  alignas(32) std::uint32_t at[256][8] = {};
  constexpr MaskLanes() {
    for (std::uint32_t mask = 0; mask < 256; ++mask)
      for (std::uint32_t lane = 0, count = 0; lane < 8; ++lane)
        if ((mask >> lane & 1) != 0) at[mask][count++] = lane;
  }
};
inline constexpr MaskLanes mask_lanes;

template <class D, class Mask>
HWY_INLINE hn::Vec<D> compress(D d, hn::Vec<D> v, Mask mask) {
  std::uint8_t bits[8];
  hn::StoreMaskBits(d, mask, bits);
  return hn::TableLookupLanes(v, hn::IndicesFromVec(d, hn::Load(d, mask_lanes.at[bits[0]])));
}
#else
template <class D, class Mask>
HWY_INLINE hn::Vec<D> compress(D, hn::Vec<D> v, Mask mask) {
  return hn::Compress(v, mask);
}
#endif

/// Whether vectors are moved to parts at once. Those of other targets are short, or compressed by
/// several instructions.
constexpr bool has_compress = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2;

/// Load and store elements as bits.
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

/// The same as `move_one_by_one`, of whole vectors. Returns the number of moved elements. Each part
/// has place for a vector after its end, as for all elements.
template <bool has_values, class T>
std::size_t move_vectors(const Distribution<T, std::uint32_t>& from, const std::uint32_t* limits, T** keys_to,
                         std::uint32_t** values_to) {
  const hn::ScalableTag<std::uint32_t> d;
  const auto flips = hn::Set(d, from.flip), limit_1 = hn::Set(d, limits[0]), limit_2 = hn::Set(d, limits[1]),
             limit_3 = hn::Set(d, limits[2]);
  const T* const x = from.keys;
  const std::size_t size = from.size;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= size; i += hn::Lanes(d)) {
    const auto keys = hn::Xor(flips, keys_at(d, x + i)), elements = elements_at(d, x + i);
    auto values = elements;
    if constexpr (has_values)
      values = from.values != nullptr ? hn::LoadU(d, from.values + i)
                                      : hn::Iota(d, from.column + static_cast<std::uint32_t>(i));
    const auto below_1 = hn::Lt(keys, limit_1), below_2 = hn::Lt(keys, limit_2),
               below_3 = hn::Lt(keys, limit_3);
    const auto move = [&](std::size_t part, auto is_of_part) HWY_ATTR {
      const std::size_t count = hn::CountTrue(d, is_of_part);
      store_elements(d, compress(d, elements, is_of_part), keys_to[part]);
      keys_to[part] += count;
      if constexpr (has_values) {
        hn::StoreU(compress(d, values, is_of_part), d, values_to[part]);
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

/// Moves elements of buckets from `first_bucket` on to parts, one after the other. Their order
/// stays. Four parts at a time: a vector has few elements for each of more parts, and memory of
/// many pages is slow.
template <bool has_values, class T, class Key>
void distribute(const Distribution<T, Key>& from, std::size_t first_bucket, std::size_t count) {
  if (from.size == 0 || count == part_length(first_bucket, has_values)) return;
  const std::size_t quarter = count / 4;
  const Key limits[] = {from.limits[quarter], from.limits[2 * quarter], from.limits[3 * quarter]};
  T* keys[] = {from.keys_to, from.some_keys, from.some_keys + from.size, from.some_keys + 2 * from.size};
  std::uint32_t* values[4] = {};
  if constexpr (has_values)
    for (std::size_t part = 0; part < 4; ++part)
      values[part] = part == 0 ? from.values_to : from.some_values + (part - 1) * from.size;
  std::size_t done = 0;
  if constexpr (has_compress && sizeof(Key) == 4) done = move_vectors<has_values>(from, limits, keys, values);
  move_one_by_one<has_values>(from, done, limits, keys, values);

  std::size_t sizes[] = {static_cast<std::size_t>(keys[0] - from.keys_to), 0, 0, 0};
  for (std::size_t part = 1; part < 4; ++part) {
    const std::size_t first = (part - 1) * from.size;
    sizes[part] = static_cast<std::size_t>(keys[part] - (from.some_keys + first));
    keys[0] = std::copy_n(from.some_keys + first, sizes[part], keys[0]);
    if constexpr (has_values) values[0] = std::copy_n(from.some_values + first, sizes[part], values[0]);
  }
  Distribution<T, Key> part = from;
  for (const std::size_t size : sizes) {
    part.keys = part.keys_to, part.values = part.values_to, part.size = size;
    distribute<has_values>(part, first_bucket, quarter);
    part.keys_to += size, part.limits += quarter, first_bucket += quarter;
    if constexpr (has_values) part.values_to += size;
  }
}

template <class T, class Key>
void distribute(const Distribution<T, Key>& from) {
  if (from.values_to != nullptr)
    distribute<true>(from, 0, buckets);
  else
    distribute<false>(from, 0, buckets);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
