#include <wye/workloads/scan.hpp>

#include <type_traits>

namespace wye::inline v0::workloads {
namespace {

template <class R, class T>
std::vector<R> prefix_sums_of(Scan scan, std::span<const T> x, std::uint64_t rows) {
  using Exact = std::conditional_t<std::is_integral_v<R>, std::uint64_t, double>;
  std::vector<R> result;
  result.reserve(x.size());
  const std::size_t columns = rows == 0 ? 0 : x.size() / rows;
  for (std::size_t row = 0; columns != 0 && row < rows; ++row) {
    Exact sum = 0;
    for (const T& number : x.subspan(row * columns, columns)) {
      if (scan == Scan::exclusive) result.push_back(static_cast<R>(sum));
      if constexpr (std::is_integral_v<R>)
        sum += static_cast<Exact>(number);
      else
        sum += static_cast<Exact>(static_cast<float>(number));
      if (scan == Scan::inclusive) result.push_back(static_cast<R>(sum));
    }
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> scan(Scan scan, std::span<const float> x, std::uint64_t rows) {
  return prefix_sums_of<double>(scan, x, rows);
}
std::vector<double> scan(Scan scan, std::span<const half> x, std::uint64_t rows) {
  return prefix_sums_of<double>(scan, x, rows);
}
std::vector<double> scan(Scan scan, std::span<const bfloat16> x, std::uint64_t rows) {
  return prefix_sums_of<double>(scan, x, rows);
}
std::vector<std::int32_t> scan(Scan scan, std::span<const std::int32_t> x, std::uint64_t rows) {
  return prefix_sums_of<std::int32_t>(scan, x, rows);
}
std::vector<std::uint32_t> scan(Scan scan, std::span<const std::uint32_t> x, std::uint64_t rows) {
  return prefix_sums_of<std::uint32_t>(scan, x, rows);
}
std::vector<std::uint64_t> scan(Scan scan, std::span<const std::uint64_t> x, std::uint64_t rows) {
  return prefix_sums_of<std::uint64_t>(scan, x, rows);
}

}  // namespace reference

}  // namespace wye::workloads
