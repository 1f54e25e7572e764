#include <wye/workloads/attention.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace wye::inline v0::workloads {
namespace {

bool all_hidden(std::span<const double> scores) {
  return std::all_of(scores.begin(), scores.end(), [](double v) { return std::isinf(v) && v < 0; });
}

template <class T>
std::vector<double> attended(std::span<const T> q, std::span<const T> k, std::span<const T> v,
                             const AttentionShape& shape, const AttentionOptions& options) {
  const double scale = options.scale ? static_cast<double>(*options.scale)
                                     : 1.0 / std::sqrt(static_cast<double>(shape.head_size));
  const auto* const mask = options.mask ? static_cast<const float*>(options.mask->operand().data) : nullptr;
  const bool of_each_head = mask != nullptr && options.mask->size() != shape.queries * shape.keys;
  const auto number = [](T value) { return static_cast<double>(static_cast<float>(value)); };
  const std::size_t size = shape.head_size, columns = shape.value_size == 0 ? size : shape.value_size;
  std::vector<double> out(shape.heads * shape.queries * columns);
  std::vector<double> weights;
  for (std::size_t head = 0; head < shape.heads; ++head)
    for (std::size_t i = 0; i < shape.queries; ++i) {
      const std::size_t ahead = i + 1 + shape.keys, seen = !options.causal         ? shape.keys
                                                           : ahead > shape.queries ? ahead - shape.queries
                                                                                   : 0;
      const std::size_t query = (head * shape.queries + i) * size, keys = head * shape.keys * size;
      weights.assign(seen, 0.0);
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (std::size_t j = 0; j < seen; ++j) {
        for (std::size_t c = 0; c < size; ++c)
          weights[j] += number(q[query + c]) * number(k[keys + j * size + c]);
        weights[j] *= scale;
        if (mask != nullptr) {
          const double added = mask[((of_each_head ? head * shape.queries : 0) + i) * shape.keys + j];
          weights[j] = std::isinf(added) && added < 0 ? added : weights[j] + added;
        }
        most = std::max(most, weights[j]);
      }
      if (mask != nullptr && all_hidden(weights)) continue;
      for (double& weight : weights) sum += weight = std::exp(weight - most);
      for (std::size_t j = 0; j < seen; ++j)
        for (std::size_t c = 0; c < columns; ++c)
          if (mask == nullptr || weights[j] != 0)
            out[(head * shape.queries + i) * columns + c] +=
                weights[j] / sum * number(v[(head * shape.keys + j) * columns + c]);
    }
  return out;
}

}  // namespace

std::vector<double> reference::attention(std::span<const float> q, std::span<const float> k,
                                         std::span<const float> v, AttentionShape shape,
                                         AttentionOptions options) {
  return attended(q, k, v, shape, options);
}
std::vector<double> reference::attention(std::span<const half> q, std::span<const half> k,
                                         std::span<const half> v, AttentionShape shape,
                                         AttentionOptions options) {
  return attended(q, k, v, shape, options);
}
std::vector<double> reference::attention(std::span<const bfloat16> q, std::span<const bfloat16> k,
                                         std::span<const bfloat16> v, AttentionShape shape,
                                         AttentionOptions options) {
  return attended(q, k, v, shape, options);
}

}  // namespace wye::workloads
