#pragma once
/// Products of few queries with many keys and values.
#include <cstddef>

namespace wye::inline v0::workloads::cpu {

/// Computes the products of at most 4 queries, which are contiguous, and of `count` keys, which begin
/// `step` apart. The products of a query are contiguous, and those of the next begin
/// `cached_stretch` after them.
void score_keys(const float* q, std::size_t queries, const float* keys, std::size_t step, std::size_t count,
                std::size_t size, float* scores);

/// Adds the values, which begin `step` apart, times the weights of at most 4 queries, to their sums,
/// which begin `sums_step` apart. Weights are where `score_keys` writes products.
void add_values(const float* weights, std::size_t queries, const float* values, std::size_t step,
                std::size_t count, std::size_t columns, float* sums, std::size_t sums_step);

}  // namespace wye::workloads::cpu
