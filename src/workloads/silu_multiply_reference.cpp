#include <wye/workloads/silu_multiply.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> silu_products(std::span<const T> gate, std::span<const T> up) {
  std::vector<double> result(gate.size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto v = static_cast<double>(static_cast<float>(gate[i]));
    const double silu = v < -87 ? -0.0 : v / (1 + std::exp(-v));
    result[i] = silu * static_cast<double>(static_cast<float>(up[i]));
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> silu_multiply(std::span<const float> gate, std::span<const float> up) {
  return silu_products(gate, up);
}
std::vector<double> silu_multiply(std::span<const half> gate, std::span<const half> up) {
  return silu_products(gate, up);
}
std::vector<double> silu_multiply(std::span<const bfloat16> gate, std::span<const bfloat16> up) {
  return silu_products(gate, up);
}

}  // namespace reference

}  // namespace wye::workloads
