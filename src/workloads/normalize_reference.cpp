#include <wye/workloads/normalize.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {

std::vector<double> reference::normalize(std::span<const float> matrix, std::uint64_t columns) {
  std::vector<double> result(matrix.begin(), matrix.end());
  for (std::size_t row = 0; row < result.size(); row += columns) {
    double squares = 0;
    for (std::size_t i = row; i < row + columns; ++i) squares += result[i] * result[i];
    if (squares == 0) continue;
    for (std::size_t i = row; i < row + columns; ++i) result[i] /= std::sqrt(squares);
  }
  return result;
}

}  // namespace wye::workloads
