#include <wye/workloads/similarity.hpp>

#include <wye/workloads/normalize.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {

std::vector<double> reference::similarity(std::span<const float> matrix, std::uint64_t columns) {
  const std::vector<double> unit = normalize(matrix, columns);
  const std::size_t rows = columns == 0 ? 0 : matrix.size() / columns;
  std::vector<double> result(rows * rows);
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < rows; ++j)
      for (std::size_t k = 0; k < columns; ++k)
        result[i * rows + j] += unit[i * columns + k] * unit[j * columns + k];
  return result;
}

}  // namespace wye::workloads
