#include <wye/workloads/segment_mean.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
std::vector<double> means_of_segments(std::span<const T> x, std::span<const std::uint32_t> offsets,
                                      std::uint64_t columns) {
  std::vector<double> result;
  for (std::size_t segment = 0; segment + 1 < offsets.size(); ++segment) {
    const std::size_t begin = offsets[segment], end = offsets[segment + 1];
    std::vector<double> sums(columns);
    for (std::size_t row = begin; row < end; ++row)
      for (std::size_t column = 0; column < columns; ++column)
        sums[column] += static_cast<double>(static_cast<float>(x[row * columns + column]));
    for (const double sum : sums) result.push_back(begin == end ? 0 : sum / static_cast<double>(end - begin));
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> segment_mean(std::span<const float> x, std::span<const std::uint32_t> offsets,
                                 std::uint64_t columns) {
  return means_of_segments(x, offsets, columns);
}
std::vector<double> segment_mean(std::span<const half> x, std::span<const std::uint32_t> offsets,
                                 std::uint64_t columns) {
  return means_of_segments(x, offsets, columns);
}
std::vector<double> segment_mean(std::span<const bfloat16> x, std::span<const std::uint32_t> offsets,
                                 std::uint64_t columns) {
  return means_of_segments(x, offsets, columns);
}

}  // namespace reference

}  // namespace wye::workloads
