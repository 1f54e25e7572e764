#pragma once
/// Attention on random heads, and its documented bound.
#include <wye/workloads/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "workloads/legs.hpp"

namespace wye::test {

template <class T>
struct Heads {
  workloads::AttentionShape shape;
  workloads::AttentionOptions options;
  std::vector<T> q, k, v;
};

inline std::uint64_t value_size(const workloads::AttentionShape& shape) {
  return shape.value_size == 0 ? shape.head_size : shape.value_size;
}
/// Numbers of all results.
inline std::uint64_t results(const workloads::AttentionShape& shape) {
  return shape.heads * shape.queries * value_size(shape);
}

/// `size`: how far from 0 queries and keys are.
template <class T>
Heads<T> heads(workloads::AttentionShape shape, workloads::AttentionOptions options = {}, float size = 1) {
  const std::uint64_t queries = shape.heads * shape.queries * shape.head_size,
                      keys = shape.heads * shape.keys * shape.head_size,
                      values = shape.heads * shape.keys * value_size(shape);
  return {shape, options, of<T>(numbers(queries, 1, -size, size)), of<T>(numbers(keys, 2, -size, size)),
          of<T>(numbers(values, 3))};
}

template <class T>
std::vector<float> attended(const Heads<T>& p, const std::string& leg) {
  std::vector<T> out = of<T>(poisoned(results(p.shape)));
  run(workloads::attention(p.q, p.k, p.v, out, p.shape, p.options), leg);
  return floats(out);
}

inline double largest_mask(const workloads::AttentionOptions& options) {
  double largest = 0;
  if (!options.mask) return largest;
  const std::span mask(static_cast<const float*>(options.mask->operand().data), options.mask->size());
  for (const float added : mask)
    if (std::isfinite(added)) largest = std::max(largest, std::abs(static_cast<double>(added)));
  return largest;
}

/// The documented bound of each number.
template <class T>
Bound bound_of(const Heads<T>& p, const std::vector<double>& exact) {
  constexpr bool is_half = std::is_same_v<T, half>, is_bfloat16 = std::is_same_v<T, bfloat16>;
  const std::uint64_t queries = p.shape.queries, keys = p.shape.keys, size = p.shape.head_size,
                      columns = value_size(p.shape);
  std::vector<T> sizes_of_v;
  for (T value : p.v) sizes_of_v.push_back(T(std::abs(static_cast<float>(value))));
  const std::vector<double> sizes = workloads::reference::attention(p.q, p.k, sizes_of_v, p.shape, p.options);
  const double scale = p.options.scale ? std::abs(static_cast<double>(*p.options.scale))
                                       : 1 / std::sqrt(static_cast<double>(size));
  const auto number = [](T value) { return std::abs(static_cast<double>(static_cast<float>(value))); };
  std::vector<double> bounds(exact.size());
  for (std::size_t row = 0; row < p.shape.heads * queries; ++row) {
    const std::size_t head = row / queries * keys;
    double largest = 0;
    for (std::size_t j = 0; j < keys; ++j) {
      double product = 0;
      for (std::size_t c = 0; c < size; ++c)
        product += number(p.q[row * size + c]) * number(p.k[(head + j) * size + c]);
      largest = std::max(largest, scale * product);
    }
    const double e = static_cast<double>(size + 4) * 0x1p-23 * largest + 0x1p-23 * largest_mask(p.options);
    const double weights = 5e-5 + std::expm1(2 * e) + static_cast<double>(keys + 2) * 0x1p-23 +
                           (is_half       ? 0x1p-11
                            : is_bfloat16 ? 0x1p-8
                                          : 0);
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t at = row * columns + c;
      double bound = weights * sizes[at];
      for (std::size_t j = 0; j < keys && is_half; ++j)
        bound += 0x1p-25 * number(p.v[(head + j) * columns + c]);
      const double rounding = is_half ? 0x1p-11 : is_bfloat16 ? 0x1p-8 : 0;
      bound += rounding * (std::abs(exact[at]) + bound) + (is_half ? 0x1p-25 : 1e-37);
      bounds[at] = bound;
    }
  }
  return [bounds](std::size_t i) { return bounds[i]; };
}

template <class T>
std::string difference_of(const Heads<T>& p, const std::string& leg) {
  const std::vector<double> exact = workloads::reference::attention(p.q, p.k, p.v, p.shape, p.options);
  return difference(attended(p, leg), exact, bound_of(p, exact));
}

/// Keys that get larger: so does the largest score, from tile to tile and stretch to stretch.
template <class T>
Heads<T> growing(workloads::AttentionShape shape, workloads::AttentionOptions options) {
  Heads<T> p = heads<T>(shape, options);
  for (std::size_t i = 0; i < p.k.size(); ++i) {
    const std::size_t row = i / shape.head_size % shape.keys;
    const float factor = 1.0f + 2.0f * static_cast<float>(row) / static_cast<float>(shape.keys);
    p.k[i] = T(static_cast<float>(p.k[i]) * factor);
  }
  return p;
}

}  // namespace wye::test
