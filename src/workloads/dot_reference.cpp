#include <wye/workloads/dot.hpp>
#include <wye/workloads/reduce.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

/// Returns the sums of the products of the rows. Products of floats are exact in float64.
template <class T>
std::vector<double> dots_of_floats(std::span<const T> x, std::span<const T> y, std::uint64_t rows) {
  std::vector<double> result(rows);
  const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t i = 0; i < rows * columns; ++i)
    result[i / columns] +=
        static_cast<double>(static_cast<float>(x[i])) * static_cast<double>(static_cast<float>(y[i]));
  return result;
}

template <class T, class Unsigned = T>
std::vector<T> dots_of_integers(std::span<const T> x, std::span<const T> y, std::uint64_t rows) {
  std::vector<T> products;
  for (std::size_t i = 0; i < x.size(); ++i)
    products.push_back(static_cast<T>(static_cast<Unsigned>(x[i]) * static_cast<Unsigned>(y[i])));
  return reference::sums(products, rows);
}

}  // namespace

namespace reference {

std::vector<double> dot(std::span<const float> x, std::span<const float> y, std::uint64_t rows) {
  return dots_of_floats(x, y, rows);
}
std::vector<double> dot(std::span<const half> x, std::span<const half> y, std::uint64_t rows) {
  return dots_of_floats(x, y, rows);
}
std::vector<double> dot(std::span<const bfloat16> x, std::span<const bfloat16> y, std::uint64_t rows) {
  return dots_of_floats(x, y, rows);
}
std::vector<std::int32_t> dot(std::span<const std::int32_t> x, std::span<const std::int32_t> y,
                              std::uint64_t rows) {
  return dots_of_integers<std::int32_t, std::uint32_t>(x, y, rows);
}
std::vector<std::uint32_t> dot(std::span<const std::uint32_t> x, std::span<const std::uint32_t> y,
                               std::uint64_t rows) {
  return dots_of_integers(x, y, rows);
}
std::vector<std::uint64_t> dot(std::span<const std::uint64_t> x, std::span<const std::uint64_t> y,
                               std::uint64_t rows) {
  return dots_of_integers(x, y, rows);
}

}  // namespace reference

}  // namespace wye::workloads
