#include <wye/workloads/layer_norm.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> layer_normed(std::span<const T> x, std::span<const T> weight, std::span<const T> bias,
                                 const LayerNormOptions& options) {
  const auto value = [](T element) { return static_cast<double>(static_cast<float>(element)); };
  const auto columns = static_cast<double>(weight.size());
  std::vector<double> result(x.size());
  for (std::size_t row = 0; row < x.size(); row += weight.size()) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) sum += value(x[row + i]);
    const double mean = sum / columns;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const double deviation = value(x[row + i]) - mean;
      squares += deviation * deviation;
    }
    const double root = std::sqrt(squares / columns + static_cast<double>(options.epsilon));
    for (std::size_t i = 0; i < weight.size(); ++i)
      result[row + i] = (value(x[row + i]) - mean) / root * value(weight[i]) + value(bias[i]);
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> layer_norm(std::span<const float> x, std::span<const float> weight,
                               std::span<const float> bias, LayerNormOptions options) {
  return layer_normed(x, weight, bias, options);
}
std::vector<double> layer_norm(std::span<const half> x, std::span<const half> weight,
                               std::span<const half> bias, LayerNormOptions options) {
  return layer_normed(x, weight, bias, options);
}
std::vector<double> layer_norm(std::span<const bfloat16> x, std::span<const bfloat16> weight,
                               std::span<const bfloat16> bias, LayerNormOptions options) {
  return layer_normed(x, weight, bias, options);
}

}  // namespace reference

}  // namespace wye::workloads
