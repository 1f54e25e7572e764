#pragma once
/// The steps of layer_norm and rms_norm.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <string>

#include "steps.hpp"

namespace wye::inline v0::workloads {

/// A kernel parameter, also declared in `shaders/include/layer_norm.glsl`, which documents the
/// phases, and `.cuh`.
struct NormStep {
  float epsilon = 0;
  std::uint32_t centered = 0;  ///< 1: the mean is subtracted
  std::uint32_t phase = 0;
};
inline constexpr std::uint32_t norm_of_rows = 0, norm_sums = 1, norm_deviations = 2, norm_results = 3;

/// Sums of deviations and of their squares.
struct Moments {
  double first = 0;
  double second = 0;
};

/// The operands of a norm. `residual` and `bias` may be empty.
template <class T>
struct NormOperands {
  Read<T> x;
  ReadWrite<T> residual;
  Read<T> weight;
  Read<T> bias;
  Write<T> result;
};

/// Returns the reason, for `workload`, if the sizes of operands or epsilon are invalid. Does not
/// check the size of the bias, nor that of an empty residual.
template <class T>
std::optional<std::string> no_row_norm(const std::string& workload, const NormOperands<T>& operands,
                                       float epsilon);

/// Adds the steps for valid operands.
template <class T>
void add_row_norm(Steps& steps, const NormOperands<T>& operands, NormStep norm);

/// Makes the job of valid operands.
template <class T>
Job row_norm(const std::string& workload, const NormOperands<T>& operands, NormStep norm);

}  // namespace wye::workloads
