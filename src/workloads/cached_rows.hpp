#pragma once
/// The parameters of the kernels of cached attention.
#include <cstdint>

namespace wye::inline v0::workloads {

/// Of rows that see all keys up to their own.
inline constexpr std::uint32_t no_window = ~0u;

/// A kernel parameter, also declared in `shaders/cached_attention/attention_places`: the rows of
/// all sequences.
struct SequenceRows {
  std::uint32_t rows = 0;
  std::uint32_t slots = 0;
  std::uint32_t capacity = 0;
  std::uint32_t longest = 0;  ///< the most keys that a row sees
  std::uint32_t causal = 0;
  std::uint32_t cached = 0;  ///< 0: keys are rows of the job
  std::uint32_t positions =
      0;  ///< 1: the position of each row in its sequence follows the places, one word each
  std::uint32_t window = no_window;  ///< the most keys that a row sees, the last ones
};

/// The place of a row, three words. Rows of keys have `key_value_heads` heads. If a row sees more
/// keys than the window, `first` is after a multiple of 256 keys: of `seen` keys, it sees the last.
struct RowPlace {
  std::uint32_t first = 0;  ///< row of the first key
  std::uint32_t seen = 0;   ///< number of keys
  std::uint32_t own = 0;    ///< row of the cache, or `no_row`
};
inline constexpr std::uint32_t no_row = ~0u, words_of_place = 3;
static_assert(sizeof(RowPlace) == words_of_place * sizeof(std::uint32_t));

/// A kernel parameter, also declared in `shaders/include/cache_append.glsl` and `.cuh`.
struct CacheRows {
  std::uint32_t rows = 0;
  std::uint32_t key_columns = 0;
  std::uint32_t value_columns = 0;
};

/// A kernel parameter, also declared in `shaders/include/cached_attention.glsl` and `.cuh`. First,
/// a workgroup attends to 256 keys with at most 4 queries of one row and one key/value head. Then,
/// 32 items add up the stretches of a query.
struct CachedStretches {
  std::uint32_t rows = 0;
  std::uint32_t head_counts = 0;  ///< of a row in the low 16 bits, of a row of keys in the high 16 bits
  std::uint32_t sizes = 0;        ///< of heads of keys in the low 16 bits, of values in the high 16 bits
  std::uint32_t stretches = 0;    ///< of the row with the most keys
  std::uint32_t adds_up = 0;      ///< 1: the second step
  float scale = 1.0f;
  float softcap = 0.0f;
  std::uint32_t window = no_window;  ///< the most keys that a row sees, the last of its place

  std::uint32_t heads() const { return head_counts & 0xffff; }
  std::uint32_t key_value_heads() const { return head_counts >> 16; }
  std::uint32_t head_size() const { return sizes & 0xffff; }
  std::uint32_t value_size() const { return sizes >> 16; }
  std::uint32_t group() const { return heads() / key_value_heads(); }
  std::uint32_t parts() const;
  std::uint64_t workgroups() const { return std::uint64_t{stretches} * key_value_heads() * rows * parts(); }
};

/// The keys of a stretch, the queries of a workgroup, and the items of each of its queries in the
/// second step.
inline constexpr std::uint32_t cached_stretch = 256, queries_of_part = 4, items_of_sum = 32;
/// The most numbers of a head.
inline constexpr std::uint32_t largest_head = 256;

inline std::uint32_t CachedStretches::parts() const {
  return (group() + queries_of_part - 1) / queries_of_part;
}

/// Returns the size of the state of a query and a stretch: its largest score, the sum of
/// exponentials, the sums of values.
constexpr std::uint64_t stretch_state(std::uint64_t value_size) { return value_size + 2; }

}  // namespace wye::workloads
