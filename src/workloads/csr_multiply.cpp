#include <wye/workloads/csr_multiply.hpp>

#include <algorithm>
#include <optional>
#include <string>

#include "cpu.hpp"
#include "csr_multiply_kernels.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& csr_blocks_kernel() {
  static const auto kernel = make_kernel<Read<std::uint32_t>, Read<std::uint32_t>, Read<float>, Read<float>,
                                         ReadWrite<float>, std::uint32_t>(
      kernels::csr_multiply_blocks, {"offsets", "columns", "values", "x", "blocks", "level"}, {},
      {host(cpu::csr_multiply_blocks, {.tile = Extent3(8192)})});
  return kernel;
}

const auto& csr_rows_kernel() {
  static const auto kernel = make_kernel<Read<std::uint32_t>, Read<std::uint32_t>, Read<float>, Read<float>,
                                         Read<float>, Write<float>, std::uint32_t>(
      kernels::csr_multiply, {"offsets", "columns", "values", "x", "blocks", "y", "lanes_log2"}, {},
      {host(cpu::csr_multiply, {.tile = Extent3(2048)})});
  return kernel;
}

Job refuse_csr(std::string sentence) {
  return refused("csr_multiply", workload_types::graph, std::move(sentence));
}

/// Returns the last offset, if it is in memory of the host.
std::optional<std::uint32_t> last_offset(const Read<std::uint32_t>& offsets) {
  const wye::detail::Operand& operand = offsets.operand();
  if (operand.kind != wye::detail::Operand::Kind::host) return std::nullopt;
  return static_cast<const std::uint32_t*>(operand.data)[offsets.size() - 1];
}

}  // namespace

Job csr_multiply(Read<std::uint32_t> offsets, Read<std::uint32_t> columns, Read<float> values, Read<float> x,
                 Write<float> y) {
  if (offsets.size() != y.size() + 1)
    return refuse_csr("Offsets (" + std::to_string(offsets.size()) +
                      " elements) of workload 'csr_multiply' must be one more than its rows (" +
                      std::to_string(y.size()) + ").");
  if (columns.size() != values.size())
    return refuse_csr("Columns (" + std::to_string(columns.size()) +
                      " elements) of workload 'csr_multiply' differ in number from its values (" +
                      std::to_string(values.size()) + " elements).");
  if (y.size() > largest_dimension)
    return refuse_csr("Rows (" + std::to_string(y.size()) +
                      ") of workload 'csr_multiply' exceed the limit (" + std::to_string(largest_dimension) +
                      ").");
  if (x.size() > largest_dimension)
    return refuse_csr("Vector x (" + std::to_string(x.size()) +
                      " elements) of workload 'csr_multiply' exceeds the limit (" +
                      std::to_string(largest_dimension) + ").");
  if (values.size() > 0xffff'ffff)
    return refuse_csr("Values (" + std::to_string(values.size()) +
                      ") of workload 'csr_multiply' exceed the limit (" + std::to_string(0xffff'ffff) + ").");
  if (const auto last = last_offset(offsets); last && *last != values.size())
    return refuse_csr("Last offset (" + std::to_string(*last) +
                      ") of workload 'csr_multiply' is not the number of its values (" +
                      std::to_string(values.size()) + ").");

  // About four elements per item, until 256 items share a row.
  std::uint32_t lanes_log2 = 0;
  while (lanes_log2 < 8 && values.size() > y.size() << (lanes_log2 + 2)) ++lanes_log2;
  const std::uint64_t of_values = values.size() / cpu::csr_block, of_blocks = of_values / cpu::csr_block;
  const Scratch<float> blocks(std::max<std::uint64_t>(of_values + of_blocks, 1));
  Steps steps;
  // A row that has no two whole blocks needs none.
  if (of_values >= 2)
    steps.add(csr_blocks_kernel(), flat(of_values << 8), offsets, columns, values, x, blocks, 0u);
  if (of_blocks >= 2)
    steps.add(csr_blocks_kernel(), flat(of_blocks << 8), offsets, columns, values, x, blocks, 1u);
  steps.add(csr_rows_kernel(), flat(y.size() << lanes_log2), offsets, columns, values, x, blocks, y,
            lanes_log2);
  return std::move(steps).job("csr_multiply", workload_types::graph);
}

}  // namespace wye::workloads
