#include "per_target.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "blocks.hpp"
#include "cached_products.hpp"
#include "cached_rows.hpp"
#include "cpu.hpp"
#include "exponential.hpp"
#include "unroll.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye::inline v0::workloads::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr std::size_t lanes = hn::MaxLanes(D());
/// With AVX-512, vectors for four queries and as many keys or columns fit into the registers.
constexpr bool is_wide = HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3;

#if HWY_TARGET != HWY_SCALAR
/// Adds up the blocks of four lanes of a vector.
template <class DV>
HWY_INLINE hn::Vec<hn::Full128<float>> add_blocks(DV, hn::Vec<DV> v) {
  if constexpr (hn::MaxLanes(DV()) == 4) {
    return v;
  } else {
    const hn::Half<DV> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif
/// Stores the sums of the lanes of four vectors.
HWY_INLINE void store_sums(V v0, V v1, V v2, V v3, float* to) {
#if HWY_TARGET == HWY_SCALAR
  const V vectors[] = {v0, v1, v2, v3};
  for (std::size_t i = 0; i < 4; ++i) to[i] = hn::GetLane(vectors[i]);
#else
  const D d;
  const hn::Repartition<double, D> pairs;
  const auto low =
      hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, v0, v1), hn::InterleaveUpper(d, v0, v1)));
  const auto high =
      hn::BitCast(pairs, hn::Add(hn::InterleaveLower(d, v2, v3), hn::InterleaveUpper(d, v2, v3)));
  const V sums = hn::Add(hn::BitCast(d, hn::InterleaveLower(pairs, low, high)),
                         hn::BitCast(d, hn::InterleaveUpper(pairs, low, high)));
  hn::StoreU(add_blocks(d, sums), hn::Full128<float>(), to);
#endif
}

/// Computes the products of `n` queries, which are contiguous, and of `count` keys, which begin
/// `step` apart. The products of a query are contiguous, and those of the next begin
/// `cached_stretch` after them. Four keys at a time; the last may repeat.
template <std::size_t n>
void score_cached_keys_of(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, std::size_t step,
                          std::size_t count, std::size_t size, float* HWY_RESTRICT scores) {
  const D d;
  for (std::size_t first = 0; first < count; first += 4) {
    const float* key[4];
    for (std::size_t k = 0; k < 4; ++k) key[k] = keys + std::min(first + k, count - 1) * step;
    V sums[n][4];
    WYE_UNROLL
    for (std::size_t j = 0; j < n; ++j) {
      WYE_UNROLL
      for (std::size_t k = 0; k < 4; ++k) sums[j][k] = hn::Zero(d);
    }
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      V some[n];
      WYE_UNROLL
      for (std::size_t j = 0; j < n; ++j) some[j] = hn::LoadU(d, q + j * size + i);
      WYE_UNROLL
      for (std::size_t k = 0; k < 4; ++k) {
        const V of_key = hn::LoadU(d, key[k] + i);
        WYE_UNROLL
        for (std::size_t j = 0; j < n; ++j) sums[j][k] = hn::MulAdd(some[j], of_key, sums[j][k]);
      }
    }
    const std::size_t some_keys = std::min<std::size_t>(count - first, 4);
    WYE_UNROLL
    for (std::size_t j = 0; j < n; ++j) {
      float of_keys[4], *const to = scores + j * cached_stretch + first;
      store_sums(sums[j][0], sums[j][1], sums[j][2], sums[j][3], some_keys == 4 ? to : of_keys);
      if (some_keys < 4) std::copy_n(of_keys, some_keys, to);
    }
    if (i == size) continue;
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t k = 0; k < some_keys; ++k) {
        float rest = 0;
        for (std::size_t r = i; r < size; ++r) rest += q[j * size + r] * key[k][r];
        scores[j * cached_stretch + first + k] += rest;
      }
  }
}
void score_cached_keys(const float* q, std::size_t queries, const float* keys, std::size_t step,
                       std::size_t count, std::size_t size, float* scores) {
  if (queries == 1) return score_cached_keys_of<1>(q, keys, step, count, size, scores);
  if (queries == 3) return score_cached_keys_of<3>(q, keys, step, count, size, scores);
  if (is_wide && queries == 4) return score_cached_keys_of<4>(q, keys, step, count, size, scores);
  for (; queries != 0; queries -= 2, q += 2 * size, scores += 2 * cached_stretch)
    score_cached_keys_of<2>(q, keys, step, count, size, scores);
}

/// Adds the values, which begin `step` apart, times the weights of `n` queries, to their sums,
/// which begin `sums_step` apart. Takes columns from c on, `vectors` vectors at a time. Returns the
/// first column that is left.
template <std::size_t n, std::size_t vectors>
std::size_t add_cached_columns(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                               std::size_t step, std::size_t count, std::size_t c, std::size_t columns,
                               float* HWY_RESTRICT sums, std::size_t sums_step) {
  const D d;
  for (; c + vectors * lanes <= columns; c += vectors * lanes) {
    V some[n][vectors];
    WYE_UNROLL
    for (std::size_t j = 0; j < n; ++j) {
      WYE_UNROLL
      for (std::size_t v = 0; v < vectors; ++v)
        some[j][v] = hn::LoadU(d, sums + j * sums_step + c + v * lanes);
    }
    for (std::size_t key = 0; key < count; ++key) {
      V of_key[vectors];
      WYE_UNROLL
      for (std::size_t v = 0; v < vectors; ++v) of_key[v] = hn::LoadU(d, values + key * step + c + v * lanes);
      WYE_UNROLL
      for (std::size_t j = 0; j < n; ++j) {
        const V weight = hn::Set(d, weights[j * cached_stretch + key]);
        WYE_UNROLL
        for (std::size_t v = 0; v < vectors; ++v) some[j][v] = hn::MulAdd(weight, of_key[v], some[j][v]);
      }
    }
    WYE_UNROLL
    for (std::size_t j = 0; j < n; ++j) {
      WYE_UNROLL
      for (std::size_t v = 0; v < vectors; ++v)
        hn::StoreU(some[j][v], d, sums + j * sums_step + c + v * lanes);
    }
  }
  return c;
}
template <std::size_t n>
void add_cached_values_of(const float* weights, const float* values, std::size_t step, std::size_t count,
                          std::size_t columns, float* sums, std::size_t sums_step) {
  constexpr std::size_t vectors = is_wide ? 4 : 2;
  std::size_t c = add_cached_columns<n, vectors>(weights, values, step, count, 0, columns, sums, sums_step);
  c = add_cached_columns<n, 1>(weights, values, step, count, c, columns, sums, sums_step);
  for (; c < columns; ++c)
    for (std::size_t j = 0; j < n; ++j)
      for (std::size_t key = 0; key < count; ++key)
        sums[j * sums_step + c] += weights[j * cached_stretch + key] * values[key * step + c];
}
void add_cached_values(const float* weights, std::size_t queries, const float* values, std::size_t step,
                       std::size_t count, std::size_t columns, float* sums, std::size_t sums_step) {
  if (queries == 1) add_cached_values_of<1>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 2) add_cached_values_of<2>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 3) add_cached_values_of<3>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 4) add_cached_values_of<4>(weights, values, step, count, columns, sums, sums_step);
}

/// Replaces scores s by cap tanh(s scale / cap). tanh is (1 - exp(-2 a)) / (1 + exp(-2 a)), and below
/// 1 / 4 its series, which ends with a^9: the next term is below 1e-8 of the sum. Infinities become
/// the cap, a NaN is kept.
void cap_scores(float* HWY_RESTRICT scores, std::size_t count, float scale, float cap) {
  const auto capped = [&](auto d, auto x) HWY_ATTR {
    const auto one = hn::Set(d, 1.0f), most = hn::Set(d, 64.0f);
    x = hn::Div(hn::Mul(x, hn::Set(d, scale)), hn::Set(d, cap));
    auto a = hn::Abs(x);
    a = hn::IfThenElse(hn::Gt(a, most), most, a);
    const auto e = exponential(d, hn::Mul(a, hn::Set(d, -2.0f)));
    const auto large = hn::Div(hn::Sub(one, e), hn::Add(one, e)), z = hn::Mul(a, a);
    auto series = hn::Set(d, 62.0f / 2835);
    series = hn::MulAdd(series, z, hn::Set(d, -17.0f / 315));
    series = hn::MulAdd(series, z, hn::Set(d, 2.0f / 15));
    series = hn::MulAdd(series, z, hn::Set(d, -1.0f / 3));
    series = hn::MulAdd(series, hn::Mul(z, a), a);
    const auto size = hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.25f)), series, large);
    return hn::CopySign(hn::Mul(size, hn::Set(d, cap)), x);
  };
  const D d;
  const hn::CappedTag<float, 1> one;
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(capped(d, hn::LoadU(d, scores + i)), d, scores + i);
  for (; i < count; ++i) hn::StoreU(capped(one, hn::LoadU(one, scores + i)), one, scores + i);
}

}  // namespace wye::workloads::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye::inline v0::workloads::cpu {
namespace {

HWY_EXPORT(score_cached_keys);
HWY_EXPORT(add_cached_values);
HWY_EXPORT(cap_scores);

/// Calls `f(i, n)` for each chunk of rows: n rows from i on. Loads the next chunk into a cache
/// meanwhile: rows are short and far from each other, which hides them from the processor's own
/// prefetching.
template <class T, class F>
void each_chunk(const T* first, std::size_t count, std::size_t columns, std::size_t step, F f) {
  constexpr std::size_t rows = 16, line = 64 / sizeof(T);
  const auto prefetch = [&](std::size_t begin) {
    for (std::size_t i = begin; i < std::min(begin + rows, count); ++i)
      for (std::size_t c = 0; c < columns; c += line) __builtin_prefetch(first + i * step + c);
  };
  prefetch(0);
  for (std::size_t i = 0; i < count; i += rows) {
    prefetch(i + rows);
    f(i, std::min(rows, count - i));
  }
}

/// Rows of one head of keys or values as floats, `step` apart.
struct FloatRows {
  const float* data;
  std::size_t step;
};

/// Converts the rows of a stretch to floats. Rows of one sequence share them.
template <class T>
class StretchRows {
 public:
  explicit StretchRows(std::size_t columns)
      : columns_(columns), memory_(hwy::AllocateAligned<float>(cached_stretch * columns)) {}

  FloatRows of(const T* first, std::size_t count, std::size_t step) {
    if (first != first_) converted_ = 0;
    first_ = first;
    const std::size_t begin = converted_;
    if (count > begin)
      each_chunk(first + begin * step, count - begin, columns_, step, [&](std::size_t i, std::size_t n) {
        widen(first + (begin + i) * step, n, columns_, step, memory_.get() + (begin + i) * columns_);
      });
    converted_ = std::max(converted_, count);
    return {memory_.get(), columns_};
  }

 private:
  std::size_t columns_;
  hwy::AlignedFreeUniquePtr<float[]> memory_;
  const T* first_ = nullptr;
  std::size_t converted_ = 0;
};
template <>
class StretchRows<float> {
 public:
  explicit StretchRows(std::size_t) {}
  static FloatRows of(const float* first, std::size_t, std::size_t step) { return {first, step}; }
};

/// The queries of one workgroup; if key/value heads have one query head, those of several rows that see
/// the same keys.
struct StretchQueries {
  std::uint64_t first;   ///< query
  std::uint64_t apart;   ///< distance of one query and the next
  std::size_t queries;   ///< at most `queries_of_part`
  std::size_t hidden;    ///< keys of the stretch that are before the window
  std::size_t count;     ///< keys of the stretch up to the place of the row
  const float* numbers;  ///< of the queries
  float* scores;
};

/// Attends to a stretch of keys with the queries of several workgroups, whose keys begin at the
/// same row: they read each chunk of keys from the first-level cache. The bits do not depend on the
/// number of workgroups.
template <class T>
void attend_stretch(std::span<const StretchQueries> groups, const T* keys, const T* values,
                    StretchRows<T>& float_keys, StretchRows<T>& float_values, float* state,
                    const CachedStretches& shape) {
  const std::size_t size = shape.head_size(), columns = shape.value_size(), step = stretch_state(columns);
  const std::size_t next = shape.stretches * step;
  std::size_t count = 0;
  for (const StretchQueries& group : groups) count = std::max(count, group.count);
  const FloatRows k = float_keys.of(keys, count, shape.key_value_heads() * size);
  // Calls `f(group, i, n)` for the keys of a chunk that a group sees: n keys from i on.
  const auto each_group = [&](std::size_t first, std::size_t of_chunk, auto f) {
    for (const StretchQueries& group : groups)
      if (const std::size_t i = std::max(first, group.hidden), end = std::min(first + of_chunk, group.count);
          i < end)
        f(group, i, end - i);
  };
  each_chunk(k.data, count, size, k.step, [&](std::size_t first, std::size_t of_chunk) {
    each_group(first, of_chunk, [&](const StretchQueries& group, std::size_t i, std::size_t n) {
      HWY_DYNAMIC_DISPATCH(score_cached_keys)
      (group.numbers, group.queries, k.data + i * k.step, k.step, n, size, group.scores + i);
    });
  });
  for (const StretchQueries& group : groups)
    for (std::size_t j = 0; j < group.queries; ++j) {
      float* const kept = state + (group.first + j * group.apart) * next;
      const std::span<float> scores{group.scores + j * cached_stretch + group.hidden,
                                    group.count - group.hidden};
      if (shape.softcap != 0)
        HWY_DYNAMIC_DISPATCH(cap_scores)(scores.data(), scores.size(), shape.scale, shape.softcap);
      const ExponentSum sum =
          exponentiate(scores, shape.softcap != 0 ? 1.0f : shape.scale, std::numeric_limits<float>::lowest());
      kept[0] = sum.most;
      kept[1] = sum.sum;
      std::fill_n(kept + 2, columns, 0.0f);
    }
  const FloatRows v = float_values.of(values, count, shape.key_value_heads() * columns);
  each_chunk(v.data, count, columns, v.step, [&](std::size_t first, std::size_t of_chunk) {
    each_group(first, of_chunk, [&](const StretchQueries& group, std::size_t i, std::size_t n) {
      HWY_DYNAMIC_DISPATCH(add_cached_values)
      (group.scores + i, group.queries, v.data + i * v.step, v.step, n, columns,
       state + group.first * next + 2, group.apart * next);
    });
  });
}

template <class T>
void attend_stretches(Range range, const T* q, const T* keys, const T* values, const std::uint32_t* places,
                      float* state, const CachedStretches& shape) {
  constexpr std::size_t most_groups = 4;
  const std::size_t size = shape.head_size(), columns = shape.value_size();
  const std::uint32_t group = shape.group(), parts = shape.parts();
  const std::uint64_t of_stretch = std::uint64_t{parts} * shape.rows;  // workgroups
  const Range items = below(range, shape.workgroups() * cached_stretch);
  StretchRows<T> float_keys(size), float_values(columns);
  const auto memory = hwy::AllocateAligned<float>(most_groups * queries_of_part * (cached_stretch + size));
  const std::uint64_t last = items.last / cached_stretch;
  for (std::uint64_t number = items.first / cached_stretch; number < last;) {
    const std::uint64_t head_and_stretch = number / of_stretch,
                        key_head = head_and_stretch % shape.key_value_heads(),
                        stretch = head_and_stretch / shape.key_value_heads(),
                        first = stretch * cached_stretch;
    const std::uint64_t end = std::min(last, (head_and_stretch + 1) * of_stretch);
    const std::uint64_t row_of_keys = places[words_of_place * (number / parts % shape.rows)];
    StretchQueries groups[most_groups];
    std::size_t found = 0;
    for (; number < end && found < most_groups; ++number) {
      const std::uint64_t part = number % parts, row = number / parts % shape.rows;
      const std::uint32_t* const place = places + words_of_place * row;
      if (place[0] != row_of_keys) break;
      if (first >= place[1]) continue;
      const std::uint64_t query = row * shape.heads() + key_head * group + part * queries_of_part;
      const std::size_t queries = std::min<std::uint64_t>(queries_of_part, group - part * queries_of_part);
      const std::size_t hidden = first == 0 && place[1] > shape.window ? place[1] - shape.window : 0;
      const std::size_t count = std::min<std::uint64_t>(cached_stretch, place[1] - first);
      if (group == 1 && found != 0) {  // the next row of an encoder sees the same keys
        StretchQueries& before = groups[found - 1];
        if (before.queries < queries_of_part && before.hidden == hidden && before.count == count &&
            query == before.first + before.queries * before.apart) {
          float* const numbers = before.scores + queries_of_part * cached_stretch;
          if (before.queries == 1 && before.numbers != numbers) std::copy_n(before.numbers, size, numbers);
          float* const to = numbers + before.queries++ * size;
          if (const float* const own = as_floats(q + query * size, size, to); own != to)
            std::copy_n(own, size, to);
          before.numbers = numbers;
          continue;
        }
      }
      float* const room = memory.get() + found * queries_of_part * (cached_stretch + size);
      groups[found++] = {
          .first = query,
          .apart = group == 1 ? shape.heads() : 1,
          .queries = queries,
          .hidden = hidden,
          .count = count,
          .numbers = as_floats(q + query * size, queries * size, room + queries_of_part * cached_stretch),
          .scores = room};
    }
    if (found == 0) continue;
    const std::uint64_t head_of_keys = (row_of_keys + first) * shape.key_value_heads() + key_head;
    attend_stretch({groups, found}, keys + head_of_keys * size, values + head_of_keys * columns, float_keys,
                   float_values, state + stretch * stretch_state(columns), shape);
  }
}

template <class T>
void add_up_stretches(Range range, const std::uint32_t* places, const float* state, T* result,
                      const CachedStretches& shape) {
  const std::size_t columns = shape.value_size(), step = stretch_state(columns);
  const Range items = below(range, std::uint64_t{shape.rows} * shape.heads() * items_of_sum);
  float sums[largest_head];
  for (std::uint64_t query = items.first / items_of_sum; query < items.last / items_of_sum; ++query) {
    const std::uint32_t seen = places[words_of_place * (query / shape.heads()) + 1];
    const float* const first = state + query * shape.stretches * step;
    const float* const last = first + (std::uint64_t{seen} + cached_stretch - 1) / cached_stretch * step;
    float most = std::numeric_limits<float>::lowest(), total = 0;
    for (const float* kept = first; kept != last; kept += step) most = std::max(most, kept[0]);
    std::fill_n(sums, columns, 0.0f);
    for (const float* kept = first; kept != last; kept += step) {
      const float ratio = std::exp(kept[0] - most);
      total += kept[1] * ratio;
      for (std::size_t c = 0; c < columns; ++c) sums[c] += kept[2 + c] * ratio;
    }
    const float share = total == 0 ? std::numeric_limits<float>::quiet_NaN() : 1.0f / total;
    for (std::size_t c = 0; c < columns; ++c) sums[c] = seen == 0 ? 0.0f : sums[c] * share;
    write_floats({sums, columns}, result + query * columns);
  }
}

}  // namespace

void score_keys(const float* q, std::size_t queries, const float* keys, std::size_t step, std::size_t count,
                std::size_t size, float* scores) {
  each_chunk(keys, count, size, step, [&](std::size_t i, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(score_cached_keys)(q, queries, keys + i * step, step, n, size, scores + i);
  });
}

void add_values(const float* weights, std::size_t queries, const float* values, std::size_t step,
                std::size_t count, std::size_t columns, float* sums, std::size_t sums_step) {
  each_chunk(values, count, columns, step, [&](std::size_t i, std::size_t n) {
    HWY_DYNAMIC_DISPATCH(add_cached_values)
    (weights + i, queries, values + i * step, step, n, columns, sums, sums_step);
  });
}

void attention_places(Range range, std::span<const std::uint32_t> offsets,
                      std::span<const std::uint32_t> slots, std::span<const std::uint32_t> cached,
                      std::span<std::uint32_t> places, SequenceRows shape) {
  for (std::uint64_t row : below(range, shape.rows)) {
    RowPlace place{.first = 0, .seen = 0, .own = no_row};
    std::uint32_t position = 0;
    // Offsets that decrease may have no sequence that the row is in.
    std::size_t s = 0, end_of_search = offsets.size() - 1;
    while (s < end_of_search) {
      const std::size_t middle = (s + end_of_search) / 2;
      if (offsets[middle] <= row)
        s = middle + 1;
      else
        end_of_search = middle;
    }
    const std::uint32_t end = s == 0 ? 0 : std::min(offsets[s], shape.rows);
    if (s != 0 && offsets[s - 1] <= row && row < end) {
      const std::uint32_t begin = offsets[s - 1], own = static_cast<std::uint32_t>(row) - begin;
      if (shape.cached == 0) {
        place.first = begin;
        position = own;
        place.seen = shape.causal != 0 ? own + 1 : end - begin;
      } else if (const std::uint32_t before = cached[s - 1];
                 slots[s - 1] < shape.slots && before < shape.capacity && own < shape.capacity - before) {
        place.first = slots[s - 1] * shape.capacity;
        position = before + own;
        place.own = place.first + position;
        place.seen = before + (shape.causal != 0 ? own + 1 : std::min(end - begin, shape.capacity - before));
      }
    }
    place.seen = std::min(place.seen, shape.longest);
    if (place.seen > shape.window) {
      const std::uint32_t hidden = (place.seen - shape.window) / cached_stretch * cached_stretch;
      place.first += hidden;
      place.seen -= hidden;
    }
    places[words_of_place * row] = place.first;
    places[words_of_place * row + 1] = place.seen;
    places[words_of_place * row + 2] = place.own;
    if (shape.positions != 0) places[std::uint64_t{words_of_place} * shape.rows + row] = position;
  }
}

template <class T>
void cache_append(Range range, std::span<const T> k, std::span<const T> v, std::span<T> key_cache,
                  std::span<T> value_cache, std::span<const std::uint32_t> places, CacheRows shape) {
  const Range items = below(range, std::uint64_t{shape.rows} * cached_stretch);
  for (std::uint64_t row = items.first / cached_stretch; row < items.last / cached_stretch; ++row) {
    const std::uint64_t own = places[words_of_place * row + 2];
    if (own == no_row) continue;
    std::copy_n(k.data() + row * shape.key_columns, shape.key_columns,
                key_cache.data() + own * shape.key_columns);
    std::copy_n(v.data() + row * shape.value_columns, shape.value_columns,
                value_cache.data() + own * shape.value_columns);
  }
}

template <class T>
void cached_attention(Range range, std::span<const T> q, std::span<const T> keys, std::span<const T> values,
                      std::span<const std::uint32_t> places, std::span<float> state, std::span<T> result,
                      CachedStretches shape) {
  if (shape.adds_up == 0)
    attend_stretches(range, q.data(), keys.data(), values.data(), places.data(), state.data(), shape);
  else
    add_up_stretches(range, places.data(), state.data(), result.data(), shape);
}

#define WYE_CACHED_ATTENTION(T)                                                                         \
  template void cache_append(Range, std::span<const T>, std::span<const T>, std::span<T>, std::span<T>, \
                             std::span<const std::uint32_t>, CacheRows);                                \
  template void cached_attention(Range, std::span<const T>, std::span<const T>, std::span<const T>,     \
                                 std::span<const std::uint32_t>, std::span<float>, std::span<T>,        \
                                 CachedStretches);
WYE_CACHED_ATTENTION(float)
WYE_CACHED_ATTENTION(half)
WYE_CACHED_ATTENTION(bfloat16)
#undef WYE_CACHED_ATTENTION

}  // namespace wye::workloads::cpu
#endif
