#include <wye/workloads/layer_norm.hpp>

#include <cmath>
#include <limits>

#include "cpu.hpp"
#include "layer_norm_kernels.hpp"
#include "row_norm.hpp"
#include "rows.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

/// `Partials` is Write for a step that reads none, and ReadWrite for the others.
template <class T, class Partials>
const auto& row_norm_kernel() {
  static const auto kernel =
      make_kernel<Read<T>, ReadWrite<T>, Read<T>, Read<T>, Partials, Write<T>, RowSplit, NormStep>(
          text_for<T>(kernels::row_norm, kernels::row_norm_half, kernels::row_norm_bfloat16),
          {"x", "residual", "weight", "bias", "partials", "result", "split", "norm"}, {},
          {host(cpu::row_norm<T>, {.tile = piece_tile})});
  return kernel;
}

template <class T>
Job layer_norm_job(const NormOperands<T>& operands, LayerNormOptions options) {
  auto why = no_row_norm<T>("layer_norm", operands, options.epsilon);
  if (!why) why = not_as_long("layer_norm", "bias", operands.bias.size(), "weight", operands.weight.size());
  if (why) return refused("layer_norm", workload_types::vector, *std::move(why));
  return row_norm<T>("layer_norm", operands, {.epsilon = options.epsilon, .centered = 1, .phase = 0});
}
template <class T>
Job layer_norm_of_sums(const NormOperands<T>& operands, LayerNormOptions options) {
  if (auto why = not_as_long("layer_norm", "residual", operands.residual.size(), "x", operands.x.size()))
    return refused("layer_norm", workload_types::vector, *std::move(why));
  return layer_norm_job(operands, options);
}

}  // namespace

template <class T>
std::optional<std::string> no_row_norm(const std::string& workload, const NormOperands<T>& operands,
                                       float epsilon) {
  if (!(epsilon >= std::numeric_limits<float>::min() && std::isfinite(epsilon)))
    return "Epsilon (" + std::to_string(epsilon) + ") of workload '" + workload +
           "' is not finite and at least 2^-126.";
  auto why = no_rows(workload, operands.x.size(), operands.weight.size());
  if (!why) why = not_as_long(workload, "result", operands.result.size(), "x", operands.x.size());
  return why;
}

template <class T>
void add_row_norm(Steps& steps, const NormOperands<T>& operands, NormStep norm) {
  const auto& [x, residual, weight, bias, result] = operands;
  const RowSplit split = split_rows(x.size(), weight.size());
  const auto phase = [&](std::uint32_t number) {
    NormStep step = norm;
    step.phase = number;
    return step;
  };
  if (split.pieces == 1) {
    steps.add(row_norm_kernel<T, Write<float>>(), split.items(), x, residual, weight, bias,
              std::span<float>(), result, split, phase(norm_of_rows));
  } else {
    const std::span<T> none;
    const Scratch<float> partials(3 * split.all_pieces());
    if (norm.centered != 0) {
      steps.add(row_norm_kernel<T, Write<float>>(), split.items(), x, residual, weight, bias, partials, none,
                split, phase(norm_sums));
      steps.add(row_norm_kernel<T, ReadWrite<float>>(), split.items(), x, residual, weight, bias, partials,
                none, split, phase(norm_deviations));
    } else {
      steps.add(row_norm_kernel<T, Write<float>>(), split.items(), x, residual, weight, bias, partials, none,
                split, phase(norm_deviations));
    }
    steps.add(row_norm_kernel<T, ReadWrite<float>>(), split.items(), x, residual, weight, bias, partials,
              result, split, phase(norm_results));
  }
}

template <class T>
Job row_norm(const std::string& workload, const NormOperands<T>& operands, NormStep norm) {
  Steps steps;
  add_row_norm(steps, operands, norm);
  return std::move(steps).job(workload, workload_types::vector);
}

#define WYE_ROW_NORM(T)                                                                               \
  template std::optional<std::string> no_row_norm(const std::string&, const NormOperands<T>&, float); \
  template void add_row_norm(Steps&, const NormOperands<T>&, NormStep);                               \
  template Job row_norm(const std::string&, const NormOperands<T>&, NormStep);
WYE_ROW_NORM(float)
WYE_ROW_NORM(half)
WYE_ROW_NORM(bfloat16)
#undef WYE_ROW_NORM

Job layer_norm(Read<float> x, Read<float> weight, Read<float> bias, Write<float> result,
               LayerNormOptions options) {
  return layer_norm_job<float>({x, std::span<float>(), weight, bias, result}, options);
}
Job layer_norm(Read<half> x, Read<half> weight, Read<half> bias, Write<half> result,
               LayerNormOptions options) {
  return layer_norm_job<half>({x, std::span<half>(), weight, bias, result}, options);
}
Job layer_norm(Read<bfloat16> x, Read<bfloat16> weight, Read<bfloat16> bias, Write<bfloat16> result,
               LayerNormOptions options) {
  return layer_norm_job<bfloat16>({x, std::span<bfloat16>(), weight, bias, result}, options);
}

Job layer_norm(Read<float> x, ReadWrite<float> residual, Read<float> weight, Read<float> bias,
               Write<float> result, LayerNormOptions options) {
  return layer_norm_of_sums<float>({x, residual, weight, bias, result}, options);
}
Job layer_norm(Read<half> x, ReadWrite<half> residual, Read<half> weight, Read<half> bias, Write<half> result,
               LayerNormOptions options) {
  return layer_norm_of_sums<half>({x, residual, weight, bias, result}, options);
}
Job layer_norm(Read<bfloat16> x, ReadWrite<bfloat16> residual, Read<bfloat16> weight, Read<bfloat16> bias,
               Write<bfloat16> result, LayerNormOptions options) {
  return layer_norm_of_sums<bfloat16>({x, residual, weight, bias, result}, options);
}

}  // namespace wye::workloads
