#include <wye/workloads/axpy.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {

std::vector<double> reference::axpy(float a, std::span<const float> x, std::span<const float> y) {
  std::vector<double> result(y.begin(), y.end());
  for (std::size_t i = 0; i < result.size(); ++i) result[i] += double{a} * double{x[i]};
  return result;
}

}  // namespace wye::workloads
