#include <wye/workloads/transpose.hpp>

#include <optional>
#include <string>

#include "cpu.hpp"
#include "steps.hpp"
#include "transpose_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
constexpr const KernelText& text() {
  return sizeof(T) == 4   ? kernels::transpose_words
         : sizeof(T) == 2 ? kernels::transpose_halves
                          : kernels::transpose_bytes;
}

template <class T>
const auto& transpose_kernel() {
  using Transpose = void (*)(Range, std::span<const T>, std::span<T>, Transposition);
  static const auto kernel = make_kernel<Read<T>, Write<T>, Transposition>(
      text<T>(), {"x", "y", "shape"}, {},
      {host(static_cast<Transpose>(cpu::transpose), {.tile = Extent3(items_per_transposed_block)})});
  return kernel;
}

/// Returns the reason if sizes are invalid.
std::optional<std::string> no_matrices(std::uint64_t x, std::uint64_t y, std::uint64_t columns,
                                       std::uint64_t batch) {
  const auto sentence = [](const std::string& what, std::uint64_t size, const std::string& rest) {
    return what + " (" + std::to_string(size) + " elements) of workload 'transpose' " + rest;
  };
  const auto too_large = [](const std::string& what, std::uint64_t value) {
    return what + " (" + std::to_string(value) + ") of workload 'transpose' exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  };
  if (batch == 0) return "Batch (0) of workload 'transpose' is below the minimum (1).";
  if (batch > largest_dimension) return too_large("Batch", batch);
  if (columns > largest_dimension) return too_large("Dimension", columns);
  if (columns == 0 ? x != 0 : x % (columns * batch) != 0)
    return sentence("Matrix x", x,
                    "has no whole number of rows of " + std::to_string(columns) + " columns" +
                        (batch == 1 ? "." : " in " + std::to_string(batch) + " matrices."));
  if (const std::uint64_t rows = columns == 0 ? 0 : x / (columns * batch); rows > largest_dimension)
    return too_large("Dimension", rows);
  if (x != y) return sentence("Matrix y", y, "is not as large as x (" + std::to_string(x) + " elements).");
  return std::nullopt;
}

template <class T>
Job transposed(const Read<T>& x, const Write<T>& y, std::uint64_t columns, std::uint64_t batch) {
  if (auto why = no_matrices(x.size(), y.size(), columns, batch))
    return refused("transpose", workload_types::matrix, *std::move(why));
  const Transposition shape{
      .rows = static_cast<std::uint32_t>(columns == 0 ? 0 : x.size() / (columns * batch)),
      .columns = static_cast<std::uint32_t>(columns),
      .batch = static_cast<std::uint32_t>(batch)};
  Steps steps;
  steps.add(transpose_kernel<T>(), flat(blocks_of(shape) * items_per_transposed_block), x, y, shape);
  return std::move(steps).job("transpose", workload_types::matrix);
}

}  // namespace

Job transpose(Read<float> x, Write<float> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}
Job transpose(Read<half> x, Write<half> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}
Job transpose(Read<bfloat16> x, Write<bfloat16> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}
Job transpose(Read<std::int8_t> x, Write<std::int8_t> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}
Job transpose(Read<std::int32_t> x, Write<std::int32_t> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}
Job transpose(Read<std::uint32_t> x, Write<std::uint32_t> y, std::uint64_t columns, std::uint64_t batch) {
  return transposed(x, y, columns, batch);
}

}  // namespace wye::workloads
