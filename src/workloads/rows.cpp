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

}  // namespace workloads
}  // namespace v0
}  // namespace wye
