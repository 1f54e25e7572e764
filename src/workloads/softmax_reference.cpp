#include <wye/workloads/softmax.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {

std::vector<double> reference::softmax(std::span<const float> matrix, std::uint64_t columns, double scale) {
  std::vector<double> result(matrix.begin(), matrix.end());
  for (std::size_t row = 0; row < result.size(); row += columns) {
    const std::span<double> values(result.data() + row, columns);
    for (double& value : values) value *= scale;
    const double most = *std::max_element(values.begin(), values.end());
    double sum = 0;
    for (double& value : values) sum += value = std::exp(value - most);
    for (double& value : values) value /= sum;
  }
  return result;
}

}  // namespace wye::workloads
