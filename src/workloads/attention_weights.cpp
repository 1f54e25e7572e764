#include <wye/workloads/attention_weights.hpp>

#include <cmath>

#include "recipes.hpp"
#include "square_root.hpp"

namespace wye::inline v0::workloads {

Job attention_weights(ReadWrite<float> scores, AttentionWeightsOptions options) {
  const std::string name = "attention_weights";
  std::uint64_t columns = options.columns;
  if (columns == 0) {
    const auto root = square_root(scores.size());
    if (!root)
      return refused(name, workload_types::attention,
                     "Scores (" + std::to_string(scores.size()) + " elements) of workload '" + name +
                         "' are not square, and no number of columns is given.");
    columns = *root;
  }
  if (auto why = no_rows(name, scores.size(), columns))
    return refused(name, workload_types::attention, *std::move(why));
  const double scale = options.head_size == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(options.head_size));
  Steps steps;
  add_softmax(steps, scores, split_rows(scores.size(), columns), static_cast<float>(scale));
  return std::move(steps).job(name, workload_types::attention);
}

}  // namespace wye::workloads
