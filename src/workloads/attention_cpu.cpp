#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cached_products.hpp"
#include "cached_rows.hpp"
#include "cpu.hpp"

namespace wye::inline v0::workloads::cpu {
namespace {

/// A tile of scores, 256 KiB. It stays in the second-level cache between the products that write
/// and read it.
constexpr std::size_t most_queries = 256, most_keys = cached_stretch;

/// Returns `count` numbers as floats: `from` itself, or its widened copy in `room`.
const float* as_floats(const float* from, std::size_t /*count*/, float* /*room*/) { return from; }
template <class T>
const float* as_floats(const T* from, std::size_t count, float* room) {
  widen(from, 1, count, count, room);
  return room;
}

/// Compares all numbers, because compilers make no vectors of a loop that may end early.
bool all_finite(const float* from, std::size_t count) {
  std::uint32_t others = 0;
  for (std::size_t i = 0; i < count; ++i)
    others += (std::bit_cast<std::uint32_t>(from[i]) & 0x7f80'0000) == 0x7f80'0000 ? 1u : 0u;
  return others == 0;
}

/// Scales scores and adds a mask. -infinity hides a key with any score.
void add_mask(std::span<float> scores, float scale, const float* mask) {
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i] = mask[i] == -std::numeric_limits<float>::infinity() ? mask[i] : scores[i] * scale + mask[i];
}

/// Adds the products of weights and values, except those with the weight 0.
void add_seen_values(std::span<const float> weights, const float* values, std::span<float> sums) {
  for (std::size_t j = 0; j < weights.size(); ++j, values += sums.size())
    if (weights[j] != 0)
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += weights[j] * values[c];
}

/// Consecutive queries of one head, beginning with `query`.
template <class T>
struct Queries {
  std::size_t query = 0;
  std::size_t rows = 0;
  const T* q = nullptr;  ///< of the first query
  const T* k = nullptr;  ///< of the head
  const T* v = nullptr;
  T* result = nullptr;          ///< of the first query
  float* state = nullptr;       ///< likewise, if there is more than one stretch
  const float* mask = nullptr;  ///< likewise, if there is one
};

template <class T>
void attend(const Queries<T>& some, const AttentionStretch& stretch) {
  constexpr bool widens = !std::is_same_v<T, float>;
  const std::size_t rows = some.rows, size = stretch.head_size(), columns = stretch.value_size(),
                    step = state_size(columns);
  const auto memory = hwy::AllocateAligned<float>(
      rows * (most_keys + columns + 2) + (widens ? rows * size + most_keys * std::max(size, columns) : 0));
  float *const scores = memory.get(), *const sums = scores + rows * most_keys,
               *const most = sums + rows * columns, *const total = most + rows;
  float *const room_of_q = total + rows, *const room = room_of_q + (widens ? rows * size : 0);
  if (stretch.first == 0) {
    std::fill_n(sums, rows * columns, 0.0f);
    std::fill_n(most, rows, std::numeric_limits<float>::lowest());
    std::fill_n(total, rows, 0.0f);
  } else {
    for (std::size_t r = 0; r < rows; ++r) {
      most[r] = some.state[r * step];
      total[r] = some.state[r * step + 1];
      std::copy_n(some.state + r * step + 2, columns, sums + r * columns);
    }
  }

  // `multiply` packs keys and values into tiles, which few queries do not pay for: of one query,
  // memory bounds the rest. Decided by all queries of the head, so that the bits do not depend on
  // the range.
  const bool few = stretch.queries <= queries_of_part;
  const float* const q = as_floats(some.q, rows * size, room_of_q);
  const std::size_t end = std::min(stretch.last, stretch.seen_by(some.query + rows - 1));
  for (std::size_t key = stretch.first; key < end; key += most_keys) {
    const std::size_t keys = std::min(most_keys, end - key), row_step = few ? most_keys : keys;
    const auto seen_here = [&](std::size_t r) {
      const std::size_t seen = stretch.seen_by(some.query + r);
      return seen > key ? std::min(seen - key, keys) : 0;
    };
    const float* const k = as_floats(some.k + key * size, keys * size, room);
    if (few)
      score_keys(q, rows, k, size, keys, size, scores);
    else
      multiply({.rows = rows,
                .columns = keys,
                .inner = size,
                .a = q,
                .a_step = size,
                .b = k,
                .b_step = size,
                .transposed_b = true,
                .c = scores,
                .c_step = keys});
    for (std::size_t r = 0; r < rows; ++r) {
      float* const row = scores + r * row_step;
      const std::size_t here = seen_here(r);
      if (some.mask != nullptr) add_mask({row, here}, stretch.scale, some.mask + r * stretch.keys + key);
      const ExponentSum sum = exponentiate({row, here}, some.mask == nullptr ? stretch.scale : 1.0f, most[r]);
      std::fill(row + here, row + keys, 0.0f);
      const float factor = std::exp(most[r] - sum.most);
      most[r] = sum.most;
      total[r] = total[r] * factor + sum.sum;
      if (factor == 1.0f) continue;
      for (std::size_t c = 0; c < columns; ++c) sums[r * columns + c] *= factor;
    }
    const float* const values = as_floats(some.v + key * columns, keys * columns, room);
    // A product with the weight 0 is 0 unless the value is NaN or infinite. In that case, each
    // query multiplies only visible keys.
    if (some.mask != nullptr && !all_finite(values, keys * columns)) {
      for (std::size_t r = 0; r < rows; ++r)
        add_seen_values({scores + r * row_step, keys}, values, {sums + r * columns, columns});
      continue;
    }
    const std::size_t seen_by_all = seen_here(0);
    const bool together = all_finite(values + seen_by_all * columns, (keys - seen_by_all) * columns);
    for (std::size_t r = 0; r < rows; r += together ? rows : 1) {
      const std::size_t some_rows = together ? rows : 1, some_keys = together ? keys : seen_here(r);
      if (few)
        add_values(scores + r * row_step, some_rows, values, columns, some_keys, columns, sums + r * columns,
                   columns);
      else
        multiply({.rows = some_rows,
                  .columns = columns,
                  .inner = some_keys,
                  .a = scores + r * row_step,
                  .a_step = row_step,
                  .b = values,
                  .b_step = columns,
                  .c = sums + r * columns,
                  .c_step = columns,
                  .add = true});
    }
  }

  for (std::size_t r = 0; r < rows; ++r) {
    if (stretch.last < stretch.keys) {
      some.state[r * step] = most[r];
      some.state[r * step + 1] = total[r];
      std::copy_n(sums + r * columns, columns, some.state + r * step + 2);
    } else if (stretch.seen_by(some.query + r) == 0) {
      std::fill_n(some.result + r * columns, columns, T(0.0f));
    } else {
      const float share = total[r] != 0          ? 1.0f / total[r]
                          : some.mask != nullptr ? 0.0f
                                                 : std::numeric_limits<float>::quiet_NaN();
      for (std::size_t c = 0; c < columns; ++c)
        some.result[r * columns + c] = T(sums[r * columns + c] * share);
    }
  }
}

/// The bits of a query do not depend on the other queries of a range.
template <class T>
void attend_all(Range range, const T* q, const T* k, const T* v, T* result, std::span<const float> mask,
                float* state, const AttentionStretch& stretch) {
  const std::uint64_t of_head = std::uint64_t{stretch.queries} * stretch.keys;
  const std::uint64_t blocks = blocks_of_head(stretch.queries);
  const Range items = below(range, stretch.heads * blocks * items_per_query_block);
  const std::uint64_t last = items.last / items_per_query_block;
  for (std::uint64_t number = items.first / items_per_query_block; number < last;) {
    const std::uint64_t head = number / blocks, query = number % blocks * queries_per_block;
    const std::uint64_t rows =
        std::min<std::uint64_t>({most_queries, stretch.queries - query, (last - number) * queries_per_block});
    const std::uint64_t row = head * stretch.queries + query, key = head * stretch.keys;
    attend(Queries<T>{.query = query,
                      .rows = rows,
                      .q = q + row * stretch.head_size(),
                      .k = k + key * stretch.head_size(),
                      .v = v + key * stretch.value_size(),
                      .result = result + row * stretch.value_size(),
                      .state = state == nullptr ? nullptr : state + row * state_size(stretch.value_size()),
                      .mask = mask.empty()
                                  ? nullptr
                                  : mask.data() + (mask.size() == of_head ? query : row) * stretch.keys},
           stretch);
    number += blocks_of_head(rows);
  }
}

}  // namespace

void attention(Range range, std::span<const float> q, std::span<const float> k, std::span<const float> v,
               std::span<float> result, std::span<float> state, AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), {}, state.data(), stretch);
}
void attention(Range range, std::span<const half> q, std::span<const half> k, std::span<const half> v,
               std::span<half> result, std::span<float> state, AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), {}, state.data(), stretch);
}
void attention(Range range, std::span<const bfloat16> q, std::span<const bfloat16> k,
               std::span<const bfloat16> v, std::span<bfloat16> result, std::span<float> state,
               AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), {}, state.data(), stretch);
}
void masked_attention(Range range, std::span<const float> q, std::span<const float> k,
                      std::span<const float> v, std::span<float> result, std::span<const float> mask,
                      std::span<float> state, AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), mask, state.data(), stretch);
}
void masked_attention(Range range, std::span<const half> q, std::span<const half> k, std::span<const half> v,
                      std::span<half> result, std::span<const float> mask, std::span<float> state,
                      AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), mask, state.data(), stretch);
}
void masked_attention(Range range, std::span<const bfloat16> q, std::span<const bfloat16> k,
                      std::span<const bfloat16> v, std::span<bfloat16> result, std::span<const float> mask,
                      std::span<float> state, AttentionStretch stretch) {
  attend_all(range, q.data(), k.data(), v.data(), result.data(), mask, state.data(), stretch);
}

}  // namespace wye::workloads::cpu
