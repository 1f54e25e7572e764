#include <wye/workloads/rope.hpp>

#include <cmath>
#include <optional>
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

template <class T>
const auto& rope_kernel() {
  static const auto kernel = make_kernel<ReadWrite<T>, Read<std::uint32_t>, Rotation>(
      text_for<T>(kernels::rope, kernels::rope_half, kernels::rope_bfloat16), {"x", "positions", "shape"}, {},
      {host(cpu::rope<T>, {.tile = piece_tile})});
  return kernel;
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
  steps.add(rope_kernel<T>(), flat(shape.teams() << shape.lanes_log2), x, positions, shape);
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
