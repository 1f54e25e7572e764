#include <wye/workloads/sort.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <type_traits>

namespace wye::inline v0::workloads {
namespace {

/// Returns whether `a` is before `b` in ascending order. NaN is after all numbers.
template <class T>
bool is_before(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a < b;
  } else {
    const auto p = static_cast<float>(a), q = static_cast<float>(b);
    return p < q || (std::isnan(q) && !std::isnan(p));
  }
}

template <class T>
std::vector<std::uint32_t> columns_in_order(std::span<const T> keys, std::uint64_t rows, SortOrder order) {
  std::vector<std::uint32_t> result(keys.size());
  const std::size_t columns = rows == 0 ? 0 : keys.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto elements = keys.subspan(row * columns, columns);
    const auto begin = result.begin() + static_cast<std::ptrdiff_t>(row * columns);
    const auto end = begin + static_cast<std::ptrdiff_t>(columns);
    std::iota(begin, end, 0u);
    std::stable_sort(begin, end, [&](std::uint32_t a, std::uint32_t b) {
      return order == SortOrder::ascending ? is_before(elements[a], elements[b])
                                           : is_before(elements[b], elements[a]);
    });
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<std::uint32_t> sorted_columns(std::span<const float> keys, std::uint64_t rows, SortOrder order) {
  return columns_in_order(keys, rows, order);
}
std::vector<std::uint32_t> sorted_columns(std::span<const half> keys, std::uint64_t rows, SortOrder order) {
  return columns_in_order(keys, rows, order);
}
std::vector<std::uint32_t> sorted_columns(std::span<const bfloat16> keys, std::uint64_t rows,
                                          SortOrder order) {
  return columns_in_order(keys, rows, order);
}
std::vector<std::uint32_t> sorted_columns(std::span<const std::int32_t> keys, std::uint64_t rows,
                                          SortOrder order) {
  return columns_in_order(keys, rows, order);
}
std::vector<std::uint32_t> sorted_columns(std::span<const std::uint32_t> keys, std::uint64_t rows,
                                          SortOrder order) {
  return columns_in_order(keys, rows, order);
}
std::vector<std::uint32_t> sorted_columns(std::span<const std::uint64_t> keys, std::uint64_t rows,
                                          SortOrder order) {
  return columns_in_order(keys, rows, order);
}

}  // namespace reference

}  // namespace wye::workloads
