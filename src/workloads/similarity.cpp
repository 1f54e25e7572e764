#include <wye/workloads/similarity.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "similarity_kernels.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& copy_kernel() {
  static const auto kernel = make_kernel<Read<float>, Write<float>>(
      kernels::copy, {"from", "to"}, {.glsl = Extent3(1024), .cuda = Extent3(1024)},
      {host(cpu::copy, {.tile = Extent3(65536)})});
  return kernel;
}

}  // namespace

Job similarity(Read<float> matrix, Write<float> result, std::uint64_t columns) {
  if (auto why = no_rows("similarity", matrix.size(), columns))
    return refused("similarity", workload_types::matrix, *std::move(why));
  const RowSplit split = split_rows(matrix.size(), columns);
  if (result.size() != std::uint64_t{split.rows} * split.rows)
    return refused("similarity", workload_types::matrix,
                   "Result (" + std::to_string(result.size()) +
                       " elements) of workload 'similarity' is not " + std::to_string(split.rows) + " x " +
                       std::to_string(split.rows) + ".");
  const Scratch<float> unit(matrix.size());
  Steps steps;
  steps.add(copy_kernel(), flat(unit.size()), matrix, unit);
  add_normalize(steps, unit, split);
  add_matmul(steps, unit, unit, result,
             {.rows = split.rows, .columns = split.rows, .inner = split.columns, .transposed_b = 1});
  return std::move(steps).job("similarity", workload_types::matrix);
}

}  // namespace wye::workloads
