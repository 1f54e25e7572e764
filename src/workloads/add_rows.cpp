#include <wye/workloads/add_rows.hpp>

#include <optional>
#include <string>

#include "add_rows_kernels.hpp"
#include "cpu.hpp"
#include "rows.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
const auto& add_rows_kernel() {
  static const auto kernel = make_kernel<ReadWrite<T>, Read<T>, Read<std::uint32_t>, RowSplit, std::uint32_t>(
      text_for<T>(kernels::add_rows, kernels::add_rows_half, kernels::add_rows_bfloat16),
      {"x", "table", "rows", "split", "table_rows"}, {}, {host(cpu::add_rows<T>, {.tile = piece_tile})});
  return kernel;
}

/// Returns the reason if a table of `size` elements cannot have rows of `columns`.
std::optional<std::string> no_table_to_add(std::uint64_t size, std::uint64_t columns) {
  const std::string table = "Table (" + std::to_string(size) + " elements) of workload 'add_rows' ";
  if (columns == 0) return std::nullopt;
  if (size % columns != 0)
    return table + "has no whole number of rows of " + std::to_string(columns) + " columns.";
  if (size / columns > largest_dimension)
    return table + "has a number of rows (" + std::to_string(size / columns) + ") that exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  return std::nullopt;
}

template <class T>
Job add_rows_job(const ReadWrite<T>& x, const Read<T>& table, const Read<std::uint32_t>& rows, RowSplit split,
                 std::uint64_t table_rows) {
  Steps steps;
  steps.add(add_rows_kernel<T>(), split.items(), x, table, rows, split,
            static_cast<std::uint32_t>(table_rows));
  return std::move(steps).job("add_rows", workload_types::vector);
}

template <class T>
Job add_one_row(const ReadWrite<T>& x, const Read<T>& row) {
  if (auto why = no_rows("add_rows", x.size(), row.size()))
    return refused("add_rows", workload_types::vector, *std::move(why));
  return add_rows_job<T>(x, row, std::span<const std::uint32_t>(), split_rows(x.size(), row.size()), 1);
}

template <class T>
Job add_table_rows(const ReadWrite<T>& x, const Read<T>& table, const Read<std::uint32_t>& rows) {
  auto why = no_columns("add_rows", x.size(), rows.size(), "numbers of rows");
  const RowSplit split = why ? RowSplit{} : split_columns(x.size(), rows.size());
  if (!why) why = no_table_to_add(table.size(), split.columns);
  if (why) return refused("add_rows", workload_types::vector, *std::move(why));
  return add_rows_job(x, table, rows, split, split.columns == 0 ? 0 : table.size() / split.columns);
}

}  // namespace

Job add_rows(ReadWrite<float> x, Read<float> row) { return add_one_row(x, row); }
Job add_rows(ReadWrite<half> x, Read<half> row) { return add_one_row(x, row); }
Job add_rows(ReadWrite<bfloat16> x, Read<bfloat16> row) { return add_one_row(x, row); }

Job add_rows(ReadWrite<float> x, Read<float> table, Read<std::uint32_t> rows) {
  return add_table_rows(x, table, rows);
}
Job add_rows(ReadWrite<half> x, Read<half> table, Read<std::uint32_t> rows) {
  return add_table_rows(x, table, rows);
}
Job add_rows(ReadWrite<bfloat16> x, Read<bfloat16> table, Read<std::uint32_t> rows) {
  return add_table_rows(x, table, rows);
}

}  // namespace wye::workloads
