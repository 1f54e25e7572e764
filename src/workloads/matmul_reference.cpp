#include <wye/workloads/matmul.hpp>

#include <cmath>
#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class Sum, class T>
std::vector<Sum> product(std::span<const T> a, std::span<const T> b, MatmulShape shape,
                         const MatmulOptions& options) {
  const std::uint64_t a_step = options.a_step.value_or(shape.rows * shape.inner),
                      b_step = options.b_step.value_or(shape.inner * shape.columns),
                      c_step = options.c_step.value_or(shape.rows * shape.columns);
  std::vector<Sum> c(options.batch == 0 ? 0 : (options.batch - 1) * c_step + shape.rows * shape.columns);
  const auto number = [](T value) {
    if constexpr (std::is_integral_v<T>)
      return Sum{value};
    else
      return Sum{static_cast<float>(value)};
  };
  for (std::size_t n = 0; n < options.batch; ++n)
    for (std::size_t i = 0; i < shape.rows; ++i)
      for (std::size_t k = 0; k < shape.inner; ++k)
        for (std::size_t j = 0; j < shape.columns; ++j)
          c[n * c_step + i * shape.columns + j] +=
              number(a[n * a_step + (options.transposed_a ? k * shape.rows + i : i * shape.inner + k)]) *
              number(b[n * b_step + (options.transposed_b ? j * shape.inner + k : k * shape.columns + j)]);
  return c;
}

double activated(double x, Activation activation) {
  const auto gated = [x](double gate) { return gate == 0 ? 0 : x * gate; };
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x < 0 ? 0 : x;
    case Activation::gelu: return gated(std::erfc(-x / std::sqrt(2.0)) / 2);
    case Activation::gelu_tanh:
      return gated(1 / (1 + std::exp(-std::sqrt(8 / 3.14159265358979323846) * (x + 0.044715 * x * x * x))));
    case Activation::silu: return gated(1 / (1 + std::exp(-x)));
  }
  return std::nan("");
}

}  // namespace

std::vector<double> reference::matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape) {
  return product<double>(a, b, shape, {});
}
std::vector<double> reference::matmul(std::span<const float> a, std::span<const float> b, MatmulShape shape,
                                      const MatmulOptions& options) {
  return product<double>(a, b, shape, options);
}
std::vector<double> reference::matmul(std::span<const half> a, std::span<const half> b, MatmulShape shape,
                                      const MatmulOptions& options) {
  return product<double>(a, b, shape, options);
}
std::vector<double> reference::matmul(std::span<const bfloat16> a, std::span<const bfloat16> b,
                                      MatmulShape shape, const MatmulOptions& options) {
  return product<double>(a, b, shape, options);
}
std::vector<double> reference::matmul_epilogue(std::span<const double> c, std::uint64_t columns, float scale,
                                               std::span<const double> bias, Activation activation,
                                               std::span<const double> residual) {
  std::vector<double> changed(c.size());
  for (std::size_t i = 0; i < c.size(); ++i)
    changed[i] = activated(scale * c[i] + (bias.empty() ? 0 : bias[i % columns]), activation) +
                 (residual.empty() ? 0 : residual[i]);
  return changed;
}
std::vector<std::int64_t> reference::matmul(std::span<const std::int8_t> a, std::span<const std::int8_t> b,
                                            MatmulShape shape, const MatmulOptions& options) {
  return product<std::int64_t>(a, b, shape, options);
}

}  // namespace wye::workloads
