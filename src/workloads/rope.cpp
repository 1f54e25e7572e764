#include <wye/workloads/rope.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "cpu.hpp"
#include "recipes.hpp"
#include "rope_kernels.hpp"
#include "rotation.hpp"
#include "rows.hpp"
#include "steps.hpp"

namespace wye::inline v0::workloads {
namespace {

/// Heads that a shader can rotate without too many iterations.
constexpr std::uint64_t longest_head = 65536;

/// Returns the factor of rotated elements.
double magnitude_of(const RopeOptions& options) {
  const bool mixes = options.yarn && options.yarn->mix != 0;
  return options.magnitude * (mixes ? 1 - 0.1 * std::log(options.scale) : 1);
}

template <class T>
const auto& rope_kernel() {
  static const auto kernel = make_kernel<ReadWrite<T>, Read<std::uint32_t>, Read<float>, Rotation>(
      text_for<T>(kernels::rope, kernels::rope_half, kernels::rope_bfloat16),
      {"x", "positions", "factors", "shape"}, {}, {host(cpu::rope<T>, {.tile = piece_tile})});
  return kernel;
}

/// The smallest divisor of a frequency. Shaders shift by its exponent.
constexpr float least_factor = 0x1p-8f;
constexpr double least_scale = 1e-6;

/// Returns the reason if factors, scale, YaRN or magnitude are invalid.
std::optional<std::string> no_scaling(std::uint64_t pairs, const RopeOptions& options,
                                      const std::string& workload) {
  const auto number = [&](const char* subject, double value) {
    return std::string(subject) + " (" + std::to_string(value) + ")" + workload;
  };
  if (options.factors) {
    const std::uint64_t size = options.factors->size();
    if (size != pairs)
      return "Frequency factors (" + std::to_string(size) + " elements)" + workload + "are not those of " +
             std::to_string(pairs) + " pairs.";
    const auto& operand = options.factors->operand();
    const bool on_host = operand.kind == wye::detail::Operand::Kind::host;
    for (std::uint64_t i = 0; i < size && on_host; ++i)
      if (const float factor = static_cast<const float*>(operand.data)[i];
          !(factor >= least_factor && std::isfinite(factor)))
        return number(("Frequency factor " + std::to_string(i)).c_str(), double{factor}) +
               "is not finite and at least " + std::to_string(least_factor) + ".";
  }
  if (!(options.scale >= least_scale && options.scale <= 1))
    return number("Scale", options.scale) + "is not between " + std::to_string(least_scale) + " and 1.";
  if (const auto magnitude = static_cast<float>(magnitude_of(options));
      !(magnitude > 0 && std::isfinite(magnitude)))
    return number("Magnitude", options.magnitude) + "is not finite and above 0.";
  if (!options.yarn) return std::nullopt;
  const RopeYarn& yarn = *options.yarn;
  if (yarn.original_context == 0) return "Original context (0)" + workload + "is below the minimum (1).";
  if (!(yarn.mix >= 0 && yarn.mix <= 1)) return number("Mix", yarn.mix) + "is not between 0 and 1.";
  if (!(yarn.beta_slow > 0)) return number("Beta slow", yarn.beta_slow) + "is not above 0.";
  if (!(yarn.beta_fast > yarn.beta_slow && std::isfinite(yarn.beta_fast)))
    return number("Beta fast", yarn.beta_fast) + "is not finite and above beta slow (" +
           std::to_string(yarn.beta_slow) + ").";
  return std::nullopt;
}

/// Returns the reason if sizes or options are invalid.
std::optional<std::string> no_rotation(std::uint64_t size, std::uint64_t rows, std::uint64_t head_size,
                                       const RopeOptions& options, const std::string& name) {
  const std::string workload = " of workload '" + name + "' ";
  if (head_size == 0 || head_size > longest_head)
    return "Size of a head (" + std::to_string(head_size) + " elements)" + workload +
           "is not between 1 and " + std::to_string(longest_head) + ".";
  const std::uint64_t rotated = options.rotated == 0 ? head_size : options.rotated;
  if (rotated % 2 != 0) return "Rotated elements (" + std::to_string(rotated) + ")" + workload + "are odd.";
  if (rotated > head_size)
    return "Rotated elements (" + std::to_string(rotated) + ")" + workload + "exceed the size of a head (" +
           std::to_string(head_size) + ").";
  if (!(options.base >= 2 && std::isfinite(options.base)))
    return "Base (" + std::to_string(options.base) + ")" + workload + "is not finite and at least 2.";
  if (auto why = no_scaling(rotated / 2, options, workload)) return why;
  const std::string x = "Vector x (" + std::to_string(size) + " elements)" + workload;
  if (rows > largest_dimension)
    return "Positions (" + std::to_string(rows) + " elements)" + workload + "exceed the limit (" +
           std::to_string(largest_dimension) + ").";
  if (rows == 0 ? size != 0 : size % (rows * head_size) != 0)
    return x + "has no whole number of heads of " + std::to_string(head_size) + " elements for " +
           std::to_string(rows) + " positions.";
  if (size / head_size > largest_dimension)
    return x + "has a number of heads (" + std::to_string(size / head_size) + ") that exceeds the limit (" +
           std::to_string(largest_dimension) + ").";
  return std::nullopt;
}

/// Sets the scales of the frequencies.
void set_ramp(Rotation& shape, const RopeOptions& options) {
  const long double shrink = 1 - static_cast<long double>(options.scale);
  long double first = shrink, slope = 0;
  if (options.yarn) {
    const RopeYarn& yarn = *options.yarn;
    const double rotated = shape.rotated, turn = 6.283185307179586;
    const auto pair_of = [&](double turns) {
      return rotated * std::log(static_cast<double>(yarn.original_context) / (turns * turn)) /
             (2 * std::log(options.base));
    };
    const double low = std::clamp(std::floor(pair_of(yarn.beta_fast)), 0.0, rotated),
                 high = std::min(std::ceil(pair_of(yarn.beta_slow)), rotated - 1);
    shape.ramp_first = static_cast<std::uint32_t>(low);
    shape.ramp_length = static_cast<std::uint32_t>(std::max(high - low, 1.0));
    first = shrink * (1 - static_cast<long double>(yarn.mix));
    slope = (shrink - first) / shape.ramp_length;
  }
  const auto first_units = static_cast<std::uint64_t>(std::ldexp(first, 64)),
             slope_units = static_cast<std::uint64_t>(std::ldexp(slope, 64));
  shape.shrink_low = static_cast<std::uint32_t>(first_units);
  shape.shrink_high = static_cast<std::uint32_t>(first_units >> 32);
  shape.slope_low = static_cast<std::uint32_t>(slope_units);
  shape.slope_high = static_cast<std::uint32_t>(slope_units >> 32);
}

Rotation rotation_of(std::uint64_t size, std::uint64_t rows, std::uint64_t head_size,
                     const RopeOptions& options) {
  const std::uint64_t rotated = options.rotated == 0 ? head_size : options.rotated;
  const long double ratio =
      std::pow(static_cast<long double>(options.base), -2.0L / static_cast<long double>(rotated));
  const auto units = static_cast<std::uint64_t>(std::ldexp(ratio, 64));
  Rotation shape;
  shape.rows = static_cast<std::uint32_t>(rows);
  shape.heads = static_cast<std::uint32_t>(rows == 0 ? 0 : size / (rows * head_size));
  shape.head_size = static_cast<std::uint32_t>(head_size);
  shape.rotated = static_cast<std::uint32_t>(rotated);
  while (shape.lanes_log2 < 8 && (2u << shape.lanes_log2) < shape.pairs()) ++shape.lanes_log2;
  shape.neighbours = options.layout == RopeLayout::neighbours ? 1 : 0;
  shape.ratio_low = static_cast<std::uint32_t>(units);
  shape.ratio_high = static_cast<std::uint32_t>(units >> 32);
  set_ramp(shape, options);
  shape.magnitude = static_cast<float>(magnitude_of(options));
  return shape;
}

template <class T>
Job rope_job(const ReadWrite<T>& x, const Read<std::uint32_t>& positions, std::uint64_t head_size,
             const RopeOptions& options) {
  Steps steps;
  if (auto why = add_rope(steps, x, positions, head_size, options, "rope"))
    return refused("rope", workload_types::vector, *std::move(why));
  return std::move(steps).job("rope", workload_types::vector);
}

}  // namespace

template <class T>
std::optional<std::string> add_rope(Steps& steps, const ReadWrite<T>& x, const Read<std::uint32_t>& positions,
                                    std::uint64_t head_size, const RopeOptions& options,
                                    const std::string& workload) {
  if (auto why = no_rotation(x.size(), positions.size(), head_size, options, workload)) return why;
  const Rotation shape = rotation_of(x.size(), positions.size(), head_size, options);
  steps.add(rope_kernel<T>(), flat(shape.teams() << shape.lanes_log2), x, positions,
            options.factors.value_or(std::span<const float>()), shape);
  return std::nullopt;
}
template std::optional<std::string> add_rope(Steps&, const ReadWrite<float>&, const Read<std::uint32_t>&,
                                             std::uint64_t, const RopeOptions&, const std::string&);
template std::optional<std::string> add_rope(Steps&, const ReadWrite<half>&, const Read<std::uint32_t>&,
                                             std::uint64_t, const RopeOptions&, const std::string&);
template std::optional<std::string> add_rope(Steps&, const ReadWrite<bfloat16>&, const Read<std::uint32_t>&,
                                             std::uint64_t, const RopeOptions&, const std::string&);

Job rope(ReadWrite<float> x, Read<std::uint32_t> positions, std::uint64_t head_size, RopeOptions options) {
  return rope_job(x, positions, head_size, options);
}
Job rope(ReadWrite<half> x, Read<std::uint32_t> positions, std::uint64_t head_size, RopeOptions options) {
  return rope_job(x, positions, head_size, options);
}
Job rope(ReadWrite<bfloat16> x, Read<std::uint32_t> positions, std::uint64_t head_size, RopeOptions options) {
  return rope_job(x, positions, head_size, options);
}

}  // namespace wye::workloads
