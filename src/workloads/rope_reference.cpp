#include <wye/workloads/rope.hpp>

#include <cmath>
#include <cstddef>

#include "rope_angles.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> rotated_heads(std::span<const T> x, std::span<const std::uint32_t> positions,
                                  std::uint64_t head_size, const RopeOptions& options) {
  std::vector<double> result;
  result.reserve(x.size());
  for (const T element : x) result.push_back(static_cast<double>(static_cast<float>(element)));
  const std::uint64_t rotated = options.rotated == 0 ? head_size : options.rotated, pairs = rotated / 2;
  const std::uint64_t heads = positions.empty() ? 0 : x.size() / (positions.size() * head_size);
  const double magnitude = rope_magnitude(options);
  const bool neighbours = options.layout == RopeLayout::neighbours;
  for (std::size_t row = 0; row < positions.size(); ++row)
    for (std::uint64_t i = 0; i < pairs; ++i) {
      const double angle = positions[row] * rope_frequency(options, rotated, i),
                   cosine = magnitude * std::cos(angle), sine = magnitude * std::sin(angle);
      for (std::uint64_t head = 0; head < heads; ++head) {
        double* const elements = result.data() + (row * heads + head) * head_size;
        double& a = elements[neighbours ? 2 * i : i];
        double& b = elements[neighbours ? 2 * i + 1 : i + pairs];
        const double before = a;
        a = before * cosine - b * sine;
        b = before * sine + b * cosine;
      }
    }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> rope(std::span<const float> x, std::span<const std::uint32_t> positions,
                         std::uint64_t head_size, RopeOptions options) {
  return rotated_heads(x, positions, head_size, options);
}
std::vector<double> rope(std::span<const half> x, std::span<const std::uint32_t> positions,
                         std::uint64_t head_size, RopeOptions options) {
  return rotated_heads(x, positions, head_size, options);
}
std::vector<double> rope(std::span<const bfloat16> x, std::span<const std::uint32_t> positions,
                         std::uint64_t head_size, RopeOptions options) {
  return rotated_heads(x, positions, head_size, options);
}

}  // namespace reference

}  // namespace wye::workloads
