#include <wye/workloads/matmul.hpp>

#include <cstddef>

namespace wye {
inline namespace v0 {
namespace workloads {

std::vector<double> reference::matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape) {
  std::vector<double> c(shape.rows * shape.columns);
  for (std::size_t i = 0; i < shape.rows; ++i)
    for (std::size_t k = 0; k < shape.inner; ++k)
      for (std::size_t j = 0; j < shape.columns; ++j)
        c[i * shape.columns + j] += double{a[i * shape.inner + k]} * double{b[k * shape.columns + j]};
  return c;
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
