#pragma once
// Quantiles of the repetitions of a benchmark.
#include <algorithm>
#include <cstddef>
#include <vector>

namespace wye_bench {

/// Returns the value below which the share `q` of `values` lies, with linear interpolation. There
/// is at least one value.
inline double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace wye_bench
