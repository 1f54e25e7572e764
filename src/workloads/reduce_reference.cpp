#include <wye/workloads/reduce.hpp>

#include <cmath>
#include <type_traits>

namespace wye::inline v0::workloads {
namespace {

/// Returns the number in the type of exact sums.
template <class T>
auto exact(T number) {
  if constexpr (std::is_same_v<T, std::int32_t>)
    return static_cast<std::uint32_t>(number);
  else if constexpr (std::is_integral_v<T>)
    return number;
  else
    return static_cast<double>(static_cast<float>(number));
}

template <class R, class T>
std::vector<R> sums_of(std::span<const T> x, std::uint64_t rows) {
  std::vector<R> result;
  const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    decltype(exact(T{})) sum = 0;
    for (const T& number : x.subspan(row * columns, columns)) sum += exact(number);
    result.push_back(static_cast<R>(sum));
  }
  return result;
}

/// Returns whether `a` is larger than `b`. NaN is larger than all numbers.
template <class T>
bool is_larger(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return a > b;
  } else {
    const auto p = static_cast<float>(a), q = static_cast<float>(b);
    return p > q || (std::isnan(p) && !std::isnan(q));
  }
}

template <class T>
std::vector<std::uint32_t> places_of(Reduction reduction, std::span<const T> x, std::uint64_t rows) {
  std::vector<std::uint32_t> result;
  const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    const auto elements = x.subspan(row * columns, columns);
    std::size_t best = 0;
    for (std::size_t i = 1; i < columns; ++i)
      if (reduction == Reduction::min ? is_larger(elements[best], elements[i])
                                      : is_larger(elements[i], elements[best]))
        best = i;
    result.push_back(static_cast<std::uint32_t>(best));
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> sums(std::span<const float> x, std::uint64_t rows) { return sums_of<double>(x, rows); }
std::vector<double> sums(std::span<const half> x, std::uint64_t rows) { return sums_of<double>(x, rows); }
std::vector<double> sums(std::span<const bfloat16> x, std::uint64_t rows) { return sums_of<double>(x, rows); }
std::vector<std::int32_t> sums(std::span<const std::int32_t> x, std::uint64_t rows) {
  return sums_of<std::int32_t>(x, rows);
}
std::vector<std::uint32_t> sums(std::span<const std::uint32_t> x, std::uint64_t rows) {
  return sums_of<std::uint32_t>(x, rows);
}
std::vector<std::uint64_t> sums(std::span<const std::uint64_t> x, std::uint64_t rows) {
  return sums_of<std::uint64_t>(x, rows);
}

std::vector<std::uint32_t> places(Reduction reduction, std::span<const float> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}
std::vector<std::uint32_t> places(Reduction reduction, std::span<const half> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}
std::vector<std::uint32_t> places(Reduction reduction, std::span<const bfloat16> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}
std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::int32_t> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}
std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::uint32_t> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}
std::vector<std::uint32_t> places(Reduction reduction, std::span<const std::uint64_t> x, std::uint64_t rows) {
  return places_of(reduction, x, rows);
}

}  // namespace reference

}  // namespace wye::workloads
