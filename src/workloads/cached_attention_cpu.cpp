#include "per_target.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "blocks.hpp"
#include "cached_rows.hpp"
#include "cpu.hpp"

HWY_BEFORE_NAMESPACE();
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Computes the products of `n` queries, which are contiguous, and of `count` keys, which begin `step` apart. The products of a
/// query are contiguous, and those of the next begin `cached_stretch` after them.
template <std::size_t n>
void score_cached_keys_of(const float* HWY_RESTRICT q, const float* HWY_RESTRICT keys, std::size_t step,
                          std::size_t count, std::size_t size, float* HWY_RESTRICT scores) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t key = 0; key < count; ++key, keys += step) {
    [[maybe_unused]] auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    std::size_t i = 0;
    for (; i + lanes <= size; i += lanes) {
      const auto some = hn::LoadU(d, keys + i);
      sum0 = hn::MulAdd(hn::LoadU(d, q + i), some, sum0);
      if constexpr (n > 1) sum1 = hn::MulAdd(hn::LoadU(d, q + size + i), some, sum1);
      if constexpr (n > 2) sum2 = hn::MulAdd(hn::LoadU(d, q + 2 * size + i), some, sum2);
      if constexpr (n > 3) sum3 = hn::MulAdd(hn::LoadU(d, q + 3 * size + i), some, sum3);
    }
    float rest[4] = {};
    for (; i < size; ++i)
      for (std::size_t j = 0; j < n; ++j) rest[j] += q[j * size + i] * keys[i];
    scores[key] = hn::GetLane(hn::SumOfLanes(d, sum0)) + rest[0];
    if constexpr (n > 1) scores[cached_stretch + key] = hn::GetLane(hn::SumOfLanes(d, sum1)) + rest[1];
    if constexpr (n > 2) scores[2 * cached_stretch + key] = hn::GetLane(hn::SumOfLanes(d, sum2)) + rest[2];
    if constexpr (n > 3) scores[3 * cached_stretch + key] = hn::GetLane(hn::SumOfLanes(d, sum3)) + rest[3];
  }
}
void score_cached_keys(const float* q, std::size_t queries, const float* keys, std::size_t step,
                       std::size_t count, std::size_t size, float* scores) {
  if (queries == 1) score_cached_keys_of<1>(q, keys, step, count, size, scores);
  if (queries == 2) score_cached_keys_of<2>(q, keys, step, count, size, scores);
  if (queries == 3) score_cached_keys_of<3>(q, keys, step, count, size, scores);
  if (queries == 4) score_cached_keys_of<4>(q, keys, step, count, size, scores);
}

/// Adds the values, which begin `step` apart, times the weights of `n` queries, to their sums, which begin `sums_step` apart.
template <std::size_t n>
void add_cached_values_of(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                          std::size_t step, std::size_t count, std::size_t columns, float* HWY_RESTRICT sums,
                          std::size_t sums_step) {
  constexpr std::size_t rows = 16;  // that stay in the first-level cache
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  for (std::size_t first = 0; first < count; first += rows) {
    const std::size_t last = std::min(first + rows, count);
    std::size_t c = 0;
    for (; c + lanes <= columns; c += lanes) {
      [[maybe_unused]] auto sum0 = hn::LoadU(d, sums + c), sum1 = sum0, sum2 = sum0, sum3 = sum0;
      if constexpr (n > 1) sum1 = hn::LoadU(d, sums + sums_step + c);
      if constexpr (n > 2) sum2 = hn::LoadU(d, sums + 2 * sums_step + c);
      if constexpr (n > 3) sum3 = hn::LoadU(d, sums + 3 * sums_step + c);
      for (std::size_t key = first; key < last; ++key) {
        const auto some = hn::LoadU(d, values + key * step + c);
        sum0 = hn::MulAdd(hn::Set(d, weights[key]), some, sum0);
        if constexpr (n > 1) sum1 = hn::MulAdd(hn::Set(d, weights[cached_stretch + key]), some, sum1);
        if constexpr (n > 2) sum2 = hn::MulAdd(hn::Set(d, weights[2 * cached_stretch + key]), some, sum2);
        if constexpr (n > 3) sum3 = hn::MulAdd(hn::Set(d, weights[3 * cached_stretch + key]), some, sum3);
      }
      hn::StoreU(sum0, d, sums + c);
      if constexpr (n > 1) hn::StoreU(sum1, d, sums + sums_step + c);
      if constexpr (n > 2) hn::StoreU(sum2, d, sums + 2 * sums_step + c);
      if constexpr (n > 3) hn::StoreU(sum3, d, sums + 3 * sums_step + c);
    }
    for (; c < columns; ++c)
      for (std::size_t j = 0; j < n; ++j)
        for (std::size_t key = first; key < last; ++key)
          sums[j * sums_step + c] += weights[j * cached_stretch + key] * values[key * step + c];
  }
}
void add_cached_values(const float* weights, std::size_t queries, const float* values, std::size_t step,
                       std::size_t count, std::size_t columns, float* sums, std::size_t sums_step) {
  if (queries == 1) add_cached_values_of<1>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 2) add_cached_values_of<2>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 3) add_cached_values_of<3>(weights, values, step, count, columns, sums, sums_step);
  if (queries == 4) add_cached_values_of<4>(weights, values, step, count, columns, sums, sums_step);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace wye {
inline namespace v0 {
namespace workloads {
namespace cpu {
namespace {

HWY_EXPORT(score_cached_keys);
HWY_EXPORT(add_cached_values);

/// Calls `f(i, n)` for each chunk of rows: n rows from i on. Loads the next chunk into a cache meanwhile: rows are short and far
/// from each other, which hides them from the processor's own prefetching.
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

template <class T>
void attend_stretches(Range range, const T* q, const T* keys, const T* values, const std::uint32_t* places,
                      float* state, const CachedStretches& shape) {
  const std::size_t size = shape.head_size(), columns = shape.value_size(), step = stretch_state(columns);
  const std::uint32_t group = shape.group(), parts = shape.parts();
  const std::size_t key_columns = shape.key_value_heads * size,
                    value_columns = shape.key_value_heads * columns;
  const Range items = below(range, shape.workgroups() * cached_stretch);
  StretchRows<T> float_keys(size), float_values(columns);
  const auto memory = hwy::AllocateAligned<float>(queries_of_part * (cached_stretch + size));
  float *const scores = memory.get(), *const room_of_q = scores + queries_of_part * cached_stretch;
  for (std::uint64_t number = items.first / cached_stretch; number < items.last / cached_stretch; ++number) {
    const std::uint64_t part = number % parts, row = number / parts % shape.rows,
                        head_and_stretch = number / parts / shape.rows,
                        key_head = head_and_stretch % shape.key_value_heads,
                        stretch = head_and_stretch / shape.key_value_heads;
    const std::uint32_t* const place = places + words_of_place * row;
    const std::uint64_t first = stretch * cached_stretch;
    if (first >= place[1]) continue;
    const std::size_t count = std::min<std::uint64_t>(cached_stretch, place[1] - first),
                      queries = std::min<std::uint64_t>(queries_of_part, group - part * queries_of_part);
    const std::uint64_t query = row * shape.heads + key_head * group + part * queries_of_part;
    const T* const first_key = keys + (place[0] + first) * key_columns + key_head * size;
    const T* const first_value = values + (place[0] + first) * value_columns + key_head * columns;
    const FloatRows k = float_keys.of(first_key, count, key_columns);
    const float* const rows_of_q = as_floats(q + query * size, queries * size, room_of_q);
    each_chunk(k.data, count, size, k.step, [&](std::size_t i, std::size_t n) {
      HWY_DYNAMIC_DISPATCH(score_cached_keys)
      (rows_of_q, queries, k.data + i * k.step, k.step, n, size, scores + i);
    });
    float* const kept = state + (query * shape.stretches + stretch) * step;
    const std::size_t next = shape.stretches * step;
    for (std::size_t j = 0; j < queries; ++j) {
      const ExponentSum sum = exponentiate({scores + j * cached_stretch, count}, shape.scale,
                                           std::numeric_limits<float>::lowest());
      kept[j * next] = sum.most;
      kept[j * next + 1] = sum.sum;
      std::fill_n(kept + j * next + 2, columns, 0.0f);
    }
    const FloatRows v = float_values.of(first_value, count, value_columns);
    each_chunk(v.data, count, columns, v.step, [&](std::size_t i, std::size_t n) {
      HWY_DYNAMIC_DISPATCH(add_cached_values)
      (scores + i, queries, v.data + i * v.step, v.step, n, columns, kept + 2, next);
    });
  }
}

template <class T>
void add_up_stretches(Range range, const std::uint32_t* places, const float* state, T* result,
                      const CachedStretches& shape) {
  const std::size_t columns = shape.value_size(), step = stretch_state(columns);
  const Range items = below(range, std::uint64_t{shape.rows} * shape.heads * items_of_sum);
  float sums[largest_head];
  for (std::uint64_t query = items.first / items_of_sum; query < items.last / items_of_sum; ++query) {
    const std::uint32_t seen = places[words_of_place * (query / shape.heads) + 1];
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
    places[words_of_place * row] = place.first;
    places[words_of_place * row + 1] = std::min(place.seen, shape.longest);
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

}  // namespace cpu
}  // namespace workloads
}  // namespace v0
}  // namespace wye
#endif
