#include "rows.hpp"

namespace wye::inline v0::workloads {
namespace {

std::string name_of(const std::string& what, std::string_view workload, std::uint64_t size) {
  return what + " (" + std::to_string(size) + " elements) of workload '" + std::string(workload) + "' ";
}

/// Returns the reason if `matrix` has too many rows or columns.
std::optional<std::string> too_large(const std::string& matrix, std::uint64_t rows, std::uint64_t columns) {
  const std::string limit = " exceeds the limit (" + std::to_string(largest_dimension) + ").";
  if (columns > largest_dimension)
    return matrix + "has rows whose length (" + std::to_string(columns) + ")" + limit;
  if (rows > largest_dimension)
    return matrix + "has a number of rows (" + std::to_string(rows) + ") that" + limit;
  return std::nullopt;
}

}  // namespace

std::optional<std::string> no_rows(std::string_view workload, std::uint64_t size, std::uint64_t columns) {
  const std::string matrix = name_of("Matrix", workload, size);
  if (columns == 0 ? size != 0 : size % columns != 0)
    return matrix + "has no whole number of rows of " + std::to_string(columns) + " columns.";
  return too_large(matrix, columns == 0 ? 0 : size / columns, columns);
}

std::optional<std::string> no_columns(std::string_view workload, std::uint64_t size, std::uint64_t rows,
                                      std::string_view of_rows) {
  const std::string x = name_of("Vector x", workload, size);
  if (rows == 0 ? size != 0 : size % rows != 0)
    return x + "has no whole number of rows for " + std::to_string(rows) + " " + std::string(of_rows) + ".";
  return too_large(x, rows, rows == 0 ? 0 : size / rows);
}

std::optional<std::string> not_as_long(std::string_view workload, std::string_view x, std::uint64_t size,
                                       std::string_view y, std::uint64_t size_of_y) {
  if (size == size_of_y) return std::nullopt;
  return name_of("Vector " + std::string(x), workload, size) + "is not as long as " + std::string(y) + " (" +
         std::to_string(size_of_y) + " elements).";
}

std::optional<std::string> no_offsets(std::string_view workload, std::span<const std::uint32_t> offsets,
                                      std::uint64_t rows) {
  const auto offset = [&](std::size_t i) {
    return "Offset " + std::to_string(i) + " (" + std::to_string(offsets[i]) + ") of workload '" +
           std::string(workload) + "' ";
  };
  if (offsets.front() != 0) return offset(0) + "is not 0.";
  for (std::size_t i = 1; i < offsets.size(); ++i)
    if (offsets[i] < offsets[i - 1])
      return offset(i) + "is below the offset before it (" + std::to_string(offsets[i - 1]) + ").";
  if (offsets.back() != rows)
    return offset(offsets.size() - 1) + "is not the number of rows (" + std::to_string(rows) + ").";
  return std::nullopt;
}

}  // namespace wye::workloads
