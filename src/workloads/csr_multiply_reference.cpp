#include <wye/workloads/csr_multiply.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {

std::vector<double> reference::csr_multiply(std::span<const std::uint32_t> offsets,
                                            std::span<const std::uint32_t> columns,
                                            std::span<const float> values, std::span<const float> x) {
  std::vector<double> y(offsets.empty() ? 0 : offsets.size() - 1);
  for (std::size_t row = 0; row < y.size(); ++row)
    for (std::size_t k = offsets[row]; k < offsets[row + 1]; ++k)
      if (columns[k] < x.size()) y[row] += double{values[k]} * double{x[columns[k]]};
  return y;
}

}  // namespace wye::workloads
