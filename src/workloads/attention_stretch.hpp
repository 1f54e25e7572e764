#pragma once
/// The parameters of attention kernels.
#include <algorithm>
#include <cstdint>

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/attention.glsl` and `.cuh`. The stretch at
/// 0 begins without a state, others with the state of the previous call. The last call sets the
/// result.
struct AttentionStretch {
  std::uint32_t heads = 0;
  std::uint32_t queries = 0;  ///< of a head
  std::uint32_t keys = 0;
  std::uint32_t sizes = 0;  ///< `sizes_of`: of rows of q and k, and of rows of v and the result
  std::uint32_t first = 0;  ///< the stretch of the keys: [first, last)
  std::uint32_t last = 0;
  std::uint32_t causal = 0;
  float scale = 1.0f;

  static constexpr std::uint32_t sizes_of(std::uint64_t head_size, std::uint64_t value_size) {
    return static_cast<std::uint32_t>(head_size | value_size << 16);
  }
  std::uint32_t head_size() const { return sizes & 0xffff; }
  std::uint32_t value_size() const { return sizes >> 16; }

  /// Returns the number of keys that a query sees, beginning with key 0.
  std::uint32_t seen_by(std::uint64_t query) const {
    if (!causal) return keys;
    const std::uint64_t ahead = query + 1 + keys;
    return static_cast<std::uint32_t>(ahead > queries ? std::min<std::uint64_t>(ahead - queries, keys) : 0);
  }
};
static_assert(sizeof(AttentionStretch) == 32);

/// The queries of one head in a CUDA block, and the minimum of a call on the host. GLSL workgroups
/// have 8. An item is a 32nd of a query.
inline constexpr std::uint32_t queries_per_block = 64, items_per_query = 32;
inline constexpr std::uint32_t items_per_query_block = queries_per_block * items_per_query;

constexpr std::uint64_t blocks_of_head(std::uint64_t queries) {
  return (queries + queries_per_block - 1) / queries_per_block;
}

/// Returns the size of a query's state between stretches: its largest score, the sum of its
/// exponentials, and the sums of values.
constexpr std::uint64_t state_size(std::uint64_t value_size) { return value_size + 2; }

}  // namespace wye::workloads
