#include "rows.hpp"

namespace wye {
inline namespace v0 {
namespace workloads {

std::optional<std::string> no_rows(std::string_view workload, std::uint64_t size, std::uint64_t columns) {
  const std::string matrix =
      "Matrix (" + std::to_string(size) + " elements) of workload '" + std::string(workload) + "' ";
  const std::string limit = " exceeds the limit (" + std::to_string(largest_dimension) + ").";
  if (columns == 0 ? size != 0 : size % columns != 0)
    return matrix + "has no whole number of rows of " + std::to_string(columns) + " columns.";
  if (columns > largest_dimension)
    return matrix + "has rows whose length (" + std::to_string(columns) + ")" + limit;
  if (columns != 0 && size / columns > largest_dimension)
    return matrix + "has a number of rows (" + std::to_string(size / columns) + ") that" + limit;
  return std::nullopt;
}

std::optional<std::string> no_columns(std::string_view workload, std::uint64_t size, std::uint64_t rows,
                                      std::string_view of_rows) {
  const std::string x =
      "Vector x (" + std::to_string(size) + " elements) of workload '" + std::string(workload) + "' ";
  const std::string limit = " exceeds the limit (" + std::to_string(largest_dimension) + ").";
  if (rows == 0 ? size != 0 : size % rows != 0)
    return x + "has no whole number of rows for " + std::to_string(rows) + " " + std::string(of_rows) + ".";
  if (rows > largest_dimension) return x + "has a number of rows (" + std::to_string(rows) + ") that" + limit;
  if (rows != 0 && size / rows > largest_dimension)
    return x + "has rows whose length (" + std::to_string(size / rows) + ")" + limit;
  return std::nullopt;
}

std::optional<std::string> not_as_long(std::string_view workload, std::string_view x, std::uint64_t size,
                                       std::string_view y, std::uint64_t size_of_y) {
  if (size == size_of_y) return std::nullopt;
  return "Vector " + std::string(x) + " (" + std::to_string(size) + " elements) of workload '" +
         std::string(workload) + "' is not as long as " + std::string(y) + " (" + std::to_string(size_of_y) +
         " elements).";
}

}  // namespace workloads
}  // namespace v0
}  // namespace wye
