#include <wye/workloads/norm.hpp>

#include "cpu.hpp"
#include "norm_kernels.hpp"
#include "rows.hpp"
#include "steps.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
const auto& norm_kernel() {
  static const auto kernel = make_kernel_with_subgroups<Read<T>, Write<float>, RowSplit, std::uint32_t>(
      text_for<T>(kernels::norm, kernels::norm_half, kernels::norm_bfloat16),
      {"x", "results", "split", "norm"}, host(cpu::norm<T>, {.tile = piece_tile}));
  return kernel;
}

/// The norm of the norms of a row's pieces is the norm of the row.
template <class T>
Job norm_job(Norm norm, const Read<T>& x, const Write<float>& results) {
  if (auto why = no_columns("norm", x.size(), results.size()))
    return refused("norm", workload_types::vector, *std::move(why));
  const RowSplit split = split_columns(x.size(), results.size());
  const auto which = static_cast<std::uint32_t>(norm);
  Steps steps;
  if (split.pieces == 1) {
    steps.add(norm_kernel<T>(), split.items(), x, results, split, which);
  } else {
    const Scratch<float> norms(split.all_pieces());
    const RowSplit of_pieces = split_of(split.rows, split.pieces);
    steps.add(norm_kernel<T>(), split.items(), x, norms, split, which);
    steps.add(norm_kernel<float>(), of_pieces.items(), norms, results, of_pieces, which);
  }
  return std::move(steps).job("norm", workload_types::vector);
}

}  // namespace

Job norm(Norm norm, Read<float> x, Write<float> results) { return norm_job(norm, x, results); }
Job norm(Norm norm, Read<half> x, Write<float> results) { return norm_job(norm, x, results); }
Job norm(Norm norm, Read<bfloat16> x, Write<float> results) { return norm_job(norm, x, results); }

}  // namespace wye::workloads
