#include <wye/workloads/scale.hpp>

#include <cstddef>
#include <type_traits>

namespace wye::inline v0::workloads {
namespace {

template <class T>
double scaled(T factor, T number) {
  return static_cast<double>(static_cast<float>(factor)) * static_cast<double>(static_cast<float>(number));
}
std::int32_t scaled(std::int32_t factor, std::int32_t number) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(factor) * static_cast<std::uint32_t>(number));
}
std::uint32_t scaled(std::uint32_t factor, std::uint32_t number) { return factor * number; }
std::uint64_t scaled(std::uint64_t factor, std::uint64_t number) { return factor * number; }

template <class T>
auto all_scaled(std::span<const T> factors, std::span<const T> x) {
  std::vector<decltype(scaled(T{}, T{}))> result;
  for (std::size_t i = 0; i < x.size(); ++i)
    result.push_back(scaled(factors[i / (x.size() / factors.size())], x[i]));
  return result;
}

}  // namespace

namespace reference {

std::vector<double> scale(std::span<const float> factors, std::span<const float> x) {
  return all_scaled(factors, x);
}
std::vector<double> scale(std::span<const half> factors, std::span<const half> x) {
  return all_scaled(factors, x);
}
std::vector<double> scale(std::span<const bfloat16> factors, std::span<const bfloat16> x) {
  return all_scaled(factors, x);
}
std::vector<std::int32_t> scale(std::span<const std::int32_t> factors, std::span<const std::int32_t> x) {
  return all_scaled(factors, x);
}
std::vector<std::uint32_t> scale(std::span<const std::uint32_t> factors, std::span<const std::uint32_t> x) {
  return all_scaled(factors, x);
}
std::vector<std::uint64_t> scale(std::span<const std::uint64_t> factors, std::span<const std::uint64_t> x) {
  return all_scaled(factors, x);
}

}  // namespace reference

}  // namespace wye::workloads
