#include <wye/workloads/rms_norm.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> rms_normed(std::span<const T> x, std::span<const T> weight,
                               const RmsNormOptions& options) {
  const auto value = [](T element) { return static_cast<double>(static_cast<float>(element)); };
  std::vector<double> result(x.size());
  for (std::size_t row = 0; row < x.size(); row += weight.size()) {
    double squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) squares += value(x[row + i]) * value(x[row + i]);
    const double root =
        std::sqrt(squares / static_cast<double>(weight.size()) + static_cast<double>(options.epsilon));
    for (std::size_t i = 0; i < weight.size(); ++i)
      result[row + i] = value(x[row + i]) / root * value(weight[i]);
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> rms_norm(std::span<const float> x, std::span<const float> weight,
                             RmsNormOptions options) {
  return rms_normed(x, weight, options);
}
std::vector<double> rms_norm(std::span<const half> x, std::span<const half> weight, RmsNormOptions options) {
  return rms_normed(x, weight, options);
}
std::vector<double> rms_norm(std::span<const bfloat16> x, std::span<const bfloat16> weight,
                             RmsNormOptions options) {
  return rms_normed(x, weight, options);
}

}  // namespace reference

}  // namespace wye::workloads
