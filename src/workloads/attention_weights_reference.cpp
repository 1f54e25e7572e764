#include <wye/workloads/attention_weights.hpp>

#include <wye/workloads/softmax.hpp>

#include <cmath>

namespace wye::inline v0::workloads {

std::vector<double> reference::attention_weights(std::span<const float> scores,
                                                 AttentionWeightsOptions options) {
  const auto side = static_cast<std::uint64_t>(std::llround(std::sqrt(static_cast<double>(scores.size()))));
  const double scale = options.head_size == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(options.head_size));
  return softmax(scores, options.columns == 0 ? side : options.columns, scale);
}

}  // namespace wye::workloads
