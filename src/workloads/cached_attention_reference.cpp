#include <wye/workloads/cached_attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

namespace wye::inline v0::workloads {
namespace {

/// The arguments of a job, in host memory.
template <class T>
struct SequencesOnHost {
  std::span<const T> q;
  std::span<const T> k;
  std::span<const T> v;
  std::span<const std::uint32_t> offsets;
  std::optional<reference::CachedKeys<T>> cache;
  SequenceShape shape;
  SequenceOptions options;
};

template <class T>
std::vector<double> attended_sequences(const SequencesOnHost<T>& a) {
  const auto number = [](T value) { return static_cast<double>(static_cast<float>(value)); };
  const std::size_t heads = a.shape.heads, size = a.shape.head_size,
                    key_heads = a.shape.key_value_heads == 0 ? heads : a.shape.key_value_heads,
                    columns = a.shape.value_size == 0 ? size : a.shape.value_size;
  const double scale =
      a.options.scale ? static_cast<double>(*a.options.scale) : 1.0 / std::sqrt(static_cast<double>(size));
  const double softcap = a.options.softcap;
  std::vector<double> out(a.q.size() / size * columns);
  for (std::size_t s = 0; s + 1 < a.offsets.size(); ++s) {
    const std::size_t begin = a.offsets[s], end = a.offsets[s + 1], before = a.cache ? a.cache->cached[s] : 0;
    std::size_t first_of_slot = 0, most = before + (end - begin);
    if (a.cache) {
      const std::size_t slots = a.cache->keys.size() / (a.cache->capacity * key_heads * size);
      if (a.cache->slots[s] >= slots || before >= a.cache->capacity) continue;
      first_of_slot = a.cache->slots[s] * a.cache->capacity;
      most = std::min<std::size_t>(most, a.cache->capacity);
    }
    for (std::size_t i = 0; i < end - begin && before + i < most; ++i)
      for (std::size_t head = 0; head < heads; ++head) {
        const std::size_t key_head = head / (heads / key_heads),
                          seen = a.options.causal ? before + i + 1 : most,
                          first =
                              a.options.window != 0 && seen > a.options.window ? seen - a.options.window : 0;
        // The head of a key, of `from` for new keys and of `cache` for those before.
        const auto head_of = [&](std::span<const T> from, std::span<const T> cache, std::size_t key,
                                 std::size_t count) {
          const std::size_t row = key < before ? first_of_slot + key : begin + key - before;
          return (key < before ? cache : from).data() + (row * key_heads + key_head) * count;
        };
        const T* const query = a.q.data() + ((begin + i) * heads + head) * size;
        std::vector<double> weights(seen);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0;
        for (std::size_t key = first; key < seen; ++key) {
          const T* const numbers = head_of(a.k, a.cache ? a.cache->keys : std::span<const T>(), key, size);
          for (std::size_t c = 0; c < size; ++c) weights[key] += number(query[c]) * number(numbers[c]);
          weights[key] *= scale;
          if (softcap != 0) weights[key] = softcap * std::tanh(weights[key] / softcap);
          largest = std::max(largest, weights[key]);
        }
        for (std::size_t key = first; key < seen; ++key)
          sum += weights[key] = std::exp(weights[key] - largest);
        double* const result = out.data() + ((begin + i) * heads + head) * columns;
        for (std::size_t key = first; key < seen; ++key) {
          const T* const numbers =
              head_of(a.v, a.cache ? a.cache->values : std::span<const T>(), key, columns);
          for (std::size_t c = 0; c < columns; ++c) result[c] += weights[key] / sum * number(numbers[c]);
        }
      }
  }
  return out;
}

}  // namespace

namespace reference {

std::vector<double> cached_attention(std::span<const float> q, std::span<const float> k,
                                     std::span<const float> v, std::span<const std::uint32_t> offsets,
                                     CachedKeys<float> cache, SequenceShape shape, SequenceOptions options) {
  return attended_sequences<float>({q, k, v, offsets, cache, shape, options});
}
std::vector<double> cached_attention(std::span<const half> q, std::span<const half> k,
                                     std::span<const half> v, std::span<const std::uint32_t> offsets,
                                     CachedKeys<half> cache, SequenceShape shape, SequenceOptions options) {
  return attended_sequences<half>({q, k, v, offsets, cache, shape, options});
}
std::vector<double> cached_attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                     std::span<const bfloat16> v, std::span<const std::uint32_t> offsets,
                                     CachedKeys<bfloat16> cache, SequenceShape shape,
                                     SequenceOptions options) {
  return attended_sequences<bfloat16>({q, k, v, offsets, cache, shape, options});
}

std::vector<double> ragged_attention(std::span<const float> q, std::span<const float> k,
                                     std::span<const float> v, std::span<const std::uint32_t> offsets,
                                     SequenceShape shape, SequenceOptions options) {
  return attended_sequences<float>({q, k, v, offsets, std::nullopt, shape, options});
}
std::vector<double> ragged_attention(std::span<const half> q, std::span<const half> k,
                                     std::span<const half> v, std::span<const std::uint32_t> offsets,
                                     SequenceShape shape, SequenceOptions options) {
  return attended_sequences<half>({q, k, v, offsets, std::nullopt, shape, options});
}
std::vector<double> ragged_attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                     std::span<const bfloat16> v, std::span<const std::uint32_t> offsets,
                                     SequenceShape shape, SequenceOptions options) {
  return attended_sequences<bfloat16>({q, k, v, offsets, std::nullopt, shape, options});
}

}  // namespace reference

}  // namespace wye::workloads
