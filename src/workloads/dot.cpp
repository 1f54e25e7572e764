#include <wye/workloads/dot.hpp>

#include "cpu.hpp"
#include "dot_kernels.hpp"
#include "recipes.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
Job dot_job(const KernelText& text, const Read<T>& x, const Read<T>& y, const Write<SumOf<T>>& results) {
  static const auto kernel = make_kernel_with_subgroups<Read<T>, Read<T>, Write<SumOf<T>>, RowSplit>(
      text, {"x", "y", "sums", "split"}, host(cpu::dot<T>, {.tile = piece_tile}));
  auto why = not_as_long("dot", "x", x.size(), "y", y.size());
  if (!why) why = no_columns("dot", x.size(), results.size());
  if (why) return refused("dot", workload_types::vector, *std::move(why));
  const RowSplit split = split_columns(x.size(), results.size());
  Steps steps;
  if (split.pieces == 1) {
    steps.add(kernel, split.items(), x, y, results, split);
  } else {
    const Scratch<SumOf<T>> partials(split.all_pieces());
    steps.add(kernel, split.items(), x, y, partials, split);
    add_sums<SumOf<T>>(steps, partials, results, split_of(split.rows, split.pieces));
  }
  return std::move(steps).job("dot", workload_types::vector);
}

}  // namespace

Job dot(Read<float> x, Read<float> y, Write<float> results) { return dot_job(kernels::dot, x, y, results); }
Job dot(Read<half> x, Read<half> y, Write<float> results) {
  return dot_job(kernels::dot_half, x, y, results);
}
Job dot(Read<bfloat16> x, Read<bfloat16> y, Write<float> results) {
  return dot_job(kernels::dot_bfloat16, x, y, results);
}
Job dot(Read<std::int32_t> x, Read<std::int32_t> y, Write<std::int32_t> results) {
  return dot_job(kernels::dot_word, x, y, results);
}
Job dot(Read<std::uint32_t> x, Read<std::uint32_t> y, Write<std::uint32_t> results) {
  return dot_job(kernels::dot_word, x, y, results);
}
Job dot(Read<std::uint64_t> x, Read<std::uint64_t> y, Write<std::uint64_t> results) {
  return dot_job(kernels::dot_uint64, x, y, results);
}

}  // namespace wye::workloads
