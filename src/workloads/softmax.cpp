#include <wye/workloads/softmax.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "softmax_kernels.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

const auto& softmax_whole() {
  static const auto kernel = make_kernel_with_subgroups<ReadWrite<float>, RowSplit, float>(
      kernels::softmax, {"matrix", "split", "scale"}, host(cpu::softmax, {.tile = row_tile}));
  return kernel;
}

const auto& softmax_sums() {
  static const auto kernel = make_kernel_with_subgroups<Read<float>, Write<float>, RowSplit, float>(
      kernels::softmax_sums, {"matrix", "sums", "split", "scale"},
      host(cpu::softmax_sums, {.tile = piece_tile}));
  return kernel;
}

const auto& softmax_apply() {
  static const auto kernel = make_kernel_with_subgroups<ReadWrite<float>, Read<float>, RowSplit, float>(
      kernels::softmax_apply, {"matrix", "sums", "split", "scale"},
      host(cpu::softmax_apply, {.tile = piece_tile}));
  return kernel;
}

}  // namespace

void add_softmax(Steps& steps, const ReadWrite<float>& matrix, RowSplit split, float scale) {
  if (split.pieces == 1) return steps.add(softmax_whole(), split.items(), matrix, split, scale);
  const Scratch<float> sums(2 * split.all_pieces());
  steps.add(softmax_sums(), split.items(), Memory(matrix), sums, split, scale);
  steps.add(softmax_apply(), split.items(), matrix, sums, split, scale);
}

Job softmax(ReadWrite<float> matrix, std::uint64_t columns) {
  if (auto why = no_rows("softmax", matrix.size(), columns))
    return refused("softmax", workload_types::vector, *std::move(why));
  Steps steps;
  add_softmax(steps, matrix, split_rows(matrix.size(), columns), 1.0f);
  return std::move(steps).job("softmax", workload_types::vector);
}

}  // namespace wye::workloads
