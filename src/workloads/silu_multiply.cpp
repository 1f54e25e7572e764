#include <wye/workloads/silu_multiply.hpp>

#include "cpu.hpp"
#include "recipes.hpp"
#include "rows.hpp"
#include "silu_multiply_kernels.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
const auto& silu_kernel() {
  static const auto kernel = make_kernel<Read<T>, Read<T>, Write<T>, RowSplit>(
      text_for<T>(kernels::silu_multiply, kernels::silu_multiply_half, kernels::silu_multiply_bfloat16),
      {"gate", "up", "result", "split"}, {}, {host(cpu::silu_multiply<T>, {.tile = piece_tile})});
  return kernel;
}

template <class T>
Job silu_job(const Read<T>& gate, const Read<T>& up, const Write<T>& result) {
  auto why = not_as_long("silu_multiply", "up", up.size(), "gate", gate.size());
  if (!why) why = not_as_long("silu_multiply", "result", result.size(), "gate", gate.size());
  if (!why) why = no_rows("silu_multiply", gate.size(), gate.size());
  if (why) return refused("silu_multiply", workload_types::vector, *std::move(why));
  Steps steps;
  add_silu_multiply(steps, gate, up, result, split_rows(gate.size(), gate.size()));
  return std::move(steps).job("silu_multiply", workload_types::vector);
}

}  // namespace

template <class T>
void add_silu_multiply(Steps& steps, const Read<T>& gate, const Read<T>& up, const Write<T>& result,
                       RowSplit split) {
  steps.add(silu_kernel<T>(), split.items(), gate, up, result, split);
}
template void add_silu_multiply(Steps&, const Read<float>&, const Read<float>&, const Write<float>&,
                                RowSplit);
template void add_silu_multiply(Steps&, const Read<half>&, const Read<half>&, const Write<half>&, RowSplit);
template void add_silu_multiply(Steps&, const Read<bfloat16>&, const Read<bfloat16>&, const Write<bfloat16>&,
                                RowSplit);

Job silu_multiply(Read<float> gate, Read<float> up, Write<float> result) {
  return silu_job(gate, up, result);
}
Job silu_multiply(Read<half> gate, Read<half> up, Write<half> result) { return silu_job(gate, up, result); }
Job silu_multiply(Read<bfloat16> gate, Read<bfloat16> up, Write<bfloat16> result) {
  return silu_job(gate, up, result);
}

}  // namespace wye::workloads
