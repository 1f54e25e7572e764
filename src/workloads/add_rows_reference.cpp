#include <wye/workloads/add_rows.hpp>

#include <cstddef>

namespace wye::inline v0::workloads {
namespace {

template <class T>
double as_double(T number) {
  return static_cast<double>(static_cast<float>(number));
}

template <class T>
std::vector<double> with_row(std::span<const T> x, std::span<const T> row) {
  std::vector<double> result;
  result.reserve(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    result.push_back(as_double(x[i]) + as_double(row[i % row.size()]));
  return result;
}

template <class T>
std::vector<double> with_table_rows(std::span<const T> x, std::span<const T> table,
                                    std::span<const std::uint32_t> rows) {
  std::vector<double> result;
  result.reserve(x.size());
  const std::size_t columns = rows.empty() ? 0 : x.size() / rows.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = rows[i / columns];
    result.push_back(as_double(x[i]) +
                     (row < table.size() / columns ? as_double(table[row * columns + i % columns]) : 0.0));
  }
  return result;
}

}  // namespace

namespace reference {

std::vector<double> add_rows(std::span<const float> x, std::span<const float> row) {
  return with_row(x, row);
}
std::vector<double> add_rows(std::span<const half> x, std::span<const half> row) { return with_row(x, row); }
std::vector<double> add_rows(std::span<const bfloat16> x, std::span<const bfloat16> row) {
  return with_row(x, row);
}
std::vector<double> add_rows(std::span<const float> x, std::span<const float> table,
                             std::span<const std::uint32_t> rows) {
  return with_table_rows(x, table, rows);
}
std::vector<double> add_rows(std::span<const half> x, std::span<const half> table,
                             std::span<const std::uint32_t> rows) {
  return with_table_rows(x, table, rows);
}
std::vector<double> add_rows(std::span<const bfloat16> x, std::span<const bfloat16> table,
                             std::span<const std::uint32_t> rows) {
  return with_table_rows(x, table, rows);
}

}  // namespace reference

}  // namespace wye::workloads
