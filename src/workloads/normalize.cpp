#include <wye/workloads/normalize.hpp>

#include "cpu.hpp"
#include "normalize_kernels.hpp"
#include "recipes.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& normalize_whole() {
  static const auto kernel = make_kernel<ReadWrite<float>, RowSplit>(
      kernels::normalize, {"matrix", "split"}, {}, {host(cpu::normalize, {.tile = row_tile})});
  return kernel;
}

const auto& normalize_sums() {
  static const auto kernel =
      make_kernel<Read<float>, Write<float>, RowSplit>(kernels::normalize_sums, {"matrix", "sums", "split"},
                                                       {}, {host(cpu::normalize_sums, {.tile = piece_tile})});
  return kernel;
}

const auto& normalize_apply() {
  static const auto kernel = make_kernel<ReadWrite<float>, Read<float>, RowSplit>(
      kernels::normalize_apply, {"matrix", "sums", "split"}, {},
      {host(cpu::normalize_apply, {.tile = piece_tile})});
  return kernel;
}

}  // namespace

void add_normalize(Steps& steps, const ReadWrite<float>& matrix, RowSplit split) {
  if (split.pieces == 1) return steps.add(normalize_whole(), split.items(), matrix, split);
  const Scratch<float> sums(3 * split.all_pieces());
  steps.add(normalize_sums(), split.items(), Memory(matrix), sums, split);
  steps.add(normalize_apply(), split.items(), matrix, sums, split);
}

Job normalize(ReadWrite<float> matrix, std::uint64_t columns) {
  if (auto why = no_rows("normalize", matrix.size(), columns))
    return refused("normalize", workload_types::vector, *std::move(why));
  Steps steps;
  add_normalize(steps, matrix, split_rows(matrix.size(), columns));
  return std::move(steps).job("normalize", workload_types::vector);
}

}  // namespace wye::workloads
