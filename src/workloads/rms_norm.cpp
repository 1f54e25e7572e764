#include <wye/workloads/rms_norm.hpp>

#include "row_norm.hpp"
#include "rows.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

template <class T>
Job rms_norm_job(const NormOperands<T>& operands, RmsNormOptions options) {
  if (auto why = no_row_norm<T>("rms_norm", operands, options.epsilon))
    return refused("rms_norm", workload_types::vector, *std::move(why));
  return row_norm<T>("rms_norm", operands, {.epsilon = options.epsilon, .centered = 0, .phase = 0});
}
template <class T>
Job rms_norm_of_sums(const NormOperands<T>& operands, RmsNormOptions options) {
  if (auto why = not_as_long("rms_norm", "residual", operands.residual.size(), "x", operands.x.size()))
    return refused("rms_norm", workload_types::vector, *std::move(why));
  return rms_norm_job(operands, options);
}

}  // namespace

Job rms_norm(Read<float> x, Read<float> weight, Write<float> result, RmsNormOptions options) {
  return rms_norm_job<float>({x, std::span<float>(), weight, std::span<const float>(), result}, options);
}
Job rms_norm(Read<half> x, Read<half> weight, Write<half> result, RmsNormOptions options) {
  return rms_norm_job<half>({x, std::span<half>(), weight, std::span<const half>(), result}, options);
}
Job rms_norm(Read<bfloat16> x, Read<bfloat16> weight, Write<bfloat16> result, RmsNormOptions options) {
  return rms_norm_job<bfloat16>({x, std::span<bfloat16>(), weight, std::span<const bfloat16>(), result},
                                options);
}

Job rms_norm(Read<float> x, ReadWrite<float> residual, Read<float> weight, Write<float> result,
             RmsNormOptions options) {
  return rms_norm_of_sums<float>({x, residual, weight, std::span<const float>(), result}, options);
}
Job rms_norm(Read<half> x, ReadWrite<half> residual, Read<half> weight, Write<half> result,
             RmsNormOptions options) {
  return rms_norm_of_sums<half>({x, residual, weight, std::span<const half>(), result}, options);
}
Job rms_norm(Read<bfloat16> x, ReadWrite<bfloat16> residual, Read<bfloat16> weight, Write<bfloat16> result,
             RmsNormOptions options) {
  return rms_norm_of_sums<bfloat16>({x, residual, weight, std::span<const bfloat16>(), result}, options);
}

}  // namespace wye::workloads
