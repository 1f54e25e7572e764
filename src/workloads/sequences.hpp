#pragma once
/// The steps of attention to sequences of unlike lengths.
#include <wye/workloads/cached_attention.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "steps.hpp"

namespace wye::inline v0::workloads {

/// The arguments of a job.
template <class T>
struct SequenceArguments {
  const char* workload;
  Read<T> q;
  Read<T> k;
  Read<T> v;
  Read<std::uint32_t> offsets;
  std::optional<KeyValueCache<T>> cache;
  Write<T> out;
  SequenceShape shape;
  SequenceOptions options;

  std::uint64_t query_columns() const { return shape.heads * shape.head_size; }
  std::uint64_t key_columns() const { return shape.key_value_heads * shape.head_size; }
  std::uint64_t value_columns() const { return shape.key_value_heads * shape.value_size; }
  std::uint64_t result_columns() const { return shape.heads * shape.value_size; }
  std::uint64_t rows() const { return q.size() / query_columns(); }
  std::uint64_t sequences() const { return offsets.size() - 1; }
  std::uint64_t slots() const { return cache->keys.size() / (cache->capacity * key_columns()); }
};

/// Completes the shape and finds the most keys that a row sees. Returns the reason if the arguments
/// are invalid.
template <class T>
std::optional<std::string> refusal_of_sequences(SequenceArguments<T>& a, std::uint64_t& longest);

/// Sets `places` to the place of each row (cached_rows.hpp). With `positions`, one word more of
/// each row follows all places: the position of the row in its sequence.
template <class T>
void add_sequence_places(Steps& steps, const SequenceArguments<T>& a, std::uint64_t longest,
                         const Scratch<std::uint32_t>& places, bool positions);

/// Appends k and v to the cache, if there is one, and attends.
template <class T>
void add_sequence_attention(Steps& steps, const SequenceArguments<T>& a, std::uint64_t longest,
                            const Scratch<std::uint32_t>& places);

}  // namespace wye::workloads
