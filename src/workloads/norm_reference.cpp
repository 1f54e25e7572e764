#include <wye/workloads/norm.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> norms(Norm norm, std::span<const T> x, std::uint64_t rows) {
  std::vector<double> result(rows);
  const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    const double size = std::abs(static_cast<double>(static_cast<float>(x[i])));
    double& all = result[i / columns];
    if (norm == Norm::infinity)
      all = size <= all || std::isnan(all) ? all : size;
    else
      all += norm == Norm::one ? size : size * size;
  }
  if (norm == Norm::two)
    for (double& all : result) all = std::sqrt(all);
  return result;
}

}  // namespace

namespace reference {

std::vector<double> norm(Norm norm, std::span<const float> x, std::uint64_t rows) {
  return norms(norm, x, rows);
}
std::vector<double> norm(Norm norm, std::span<const half> x, std::uint64_t rows) {
  return norms(norm, x, rows);
}
std::vector<double> norm(Norm norm, std::span<const bfloat16> x, std::uint64_t rows) {
  return norms(norm, x, rows);
}

}  // namespace reference

}  // namespace wye::workloads
