#include <wye/workloads/force_layout.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "cpu.hpp"
#include "force_layout_kernels.hpp"
#include "steps.hpp"
#include "subgroups.hpp"

namespace wye::inline v0::workloads {
namespace {

/// A workgroup computes the forces on fewer nodes than it has invocations: these share the other
/// nodes.
const auto& forces_kernel() {
  static const auto kernel =
      make_kernel_with_shared_reads<Read<std::uint32_t>, Read<std::uint32_t>, Read<float>, Read<float>,
                                    Write<float>, float, float, std::uint32_t>(
          kernels::force_layout_forces,
          {"offsets", "targets", "weights", "bodies", "forces", "repulsion", "gravity", "strong"},
          {.glsl = Extent3(64), .cuda = Extent3(32)},
          host(cpu::force_layout_forces, {.tile = Extent3(cpu::layout_tile)}));
  return kernel;
}

const auto& speed_kernel() {
  static const auto kernel = make_kernel<Read<float>, Read<float>, ReadWrite<float>, float>(
      kernels::force_layout_speed, {"bodies", "forces", "state", "tolerance"}, {},
      {host(cpu::force_layout_speed, {.tile = Extent3(0)})});
  return kernel;
}

/// `Bodies` is Write for the step that begins a job and reads no forces, and ReadWrite for the
/// others.
template <class Bodies>
const auto& move_kernel() {
  static const auto kernel = make_kernel<Read<std::uint32_t>, Read<std::uint32_t>, ReadWrite<float>, Bodies,
                                         Read<float>, ReadWrite<float>, std::uint32_t>(
      kernels::force_layout_move, {"offsets", "targets", "positions", "bodies", "forces", "state", "begins"},
      {}, {host(cpu::force_layout_move, {.tile = Extent3(2048)})});
  return kernel;
}

Job refuse_layout(std::string sentence) {
  return refused("force_layout", workload_types::simulation, std::move(sentence));
}

constexpr std::uint32_t most_nodes = 65536, most_rounds = 1000;
constexpr std::uint64_t most_links = 0xffff'ffff;

/// Returns the reason if an option is out of its range.
std::optional<std::string> no_layout_options(const ForceLayoutOptions& options) {
  const auto beyond = [](const std::string& name, float value, const char* range) {
    return name + " (" + std::to_string(value) + ") of workload 'force_layout' is not finite and " + range +
           ".";
  };
  if (!(options.repulsion >= 0 && std::isfinite(options.repulsion)))
    return beyond("Repulsion", options.repulsion, "at least 0");
  if (!(options.gravity >= 0 && std::isfinite(options.gravity)))
    return beyond("Gravity", options.gravity, "at least 0");
  if (!(options.tolerance > 0 && std::isfinite(options.tolerance)))
    return beyond("Tolerance", options.tolerance, "above 0");
  if (options.iterations < 1 || options.iterations > most_rounds)
    return "Iterations (" + std::to_string(options.iterations) +
           ") of workload 'force_layout' are not between 1 and " + std::to_string(most_rounds) + ".";
  return std::nullopt;
}

/// Returns the reason if weights or, in memory of the host, the last offset do not match the links.
std::optional<std::string> no_links(const Read<std::uint32_t>& offsets, std::uint64_t links,
                                    const std::optional<Read<float>>& weights) {
  using Kind = wye::detail::Operand::Kind;
  if (links > most_links)
    return "Links (" + std::to_string(links) + ") of workload 'force_layout' exceed the limit (" +
           std::to_string(most_links) + ").";
  if (offsets.operand().kind == Kind::host) {
    const auto last = static_cast<const std::uint32_t*>(offsets.operand().data)[offsets.size() - 1];
    if (last != links)
      return "Last offset (" + std::to_string(last) +
             ") of workload 'force_layout' is not the number of its links (" + std::to_string(links) + ").";
  }
  if (!weights) return std::nullopt;
  if (weights->size() != links)
    return "Weights (" + std::to_string(weights->size()) +
           " elements) of workload 'force_layout' differ in number from its links (" + std::to_string(links) +
           " elements).";
  if (weights->operand().kind != Kind::host) return std::nullopt;
  const auto* const values = static_cast<const float*>(weights->operand().data);
  for (std::size_t i = 0; i < links; ++i)
    if (!(values[i] >= 0 && std::isfinite(values[i])))
      return "Weight (" + std::to_string(values[i]) + " of link " + std::to_string(i) +
             ") of workload 'force_layout' is not finite and at least 0.";
  return std::nullopt;
}

}  // namespace

Job force_layout(Read<std::uint32_t> offsets, Read<std::uint32_t> targets, ReadWrite<float> positions,
                 ReadWrite<float> state, ForceLayoutOptions options) {
  if (offsets.size() == 0) return refuse_layout("Offsets (0 elements) of workload 'force_layout' are empty.");
  const std::uint64_t nodes = offsets.size() - 1;
  if (nodes > most_nodes)
    return refuse_layout("Nodes (" + std::to_string(nodes) +
                         ") of workload 'force_layout' exceed the limit (" + std::to_string(most_nodes) +
                         ").");
  if (positions.size() != 2 * nodes)
    return refuse_layout("Positions (" + std::to_string(positions.size()) +
                         " elements) of workload 'force_layout' are not two for each of its nodes (" +
                         std::to_string(nodes) + ").");
  if (state.size() != force_layout_state_size(nodes))
    return refuse_layout("State (" + std::to_string(state.size()) +
                         " elements) of workload 'force_layout' does not have " +
                         std::to_string(force_layout_state_size(nodes)) + " elements for its nodes (" +
                         std::to_string(nodes) + ").");
  if (auto why = no_layout_options(options)) return refuse_layout(*std::move(why));
  if (auto why = no_links(offsets, targets.size(), options.weights)) return refuse_layout(*std::move(why));

  const Read<float> weights = options.weights ? *options.weights : Read<float>(std::span<const float>());
  const Scratch<float> bodies(3 * nodes), forces(2 * nodes);
  const std::uint32_t strong = options.strong_gravity ? 1 : 0;
  Steps steps;
  steps.add(move_kernel<Write<float>>(), flat(nodes), offsets, targets, positions, bodies,
            std::span<const float>(), state, 1u);
  for (std::uint32_t i = 0; i < options.iterations; ++i) {
    steps.add(forces_kernel(), flat(nodes), offsets, targets, weights, bodies, forces, options.repulsion,
              options.gravity, strong);
    steps.add(speed_kernel(), Extent3(256), bodies, forces, state, options.tolerance);
    steps.add(move_kernel<ReadWrite<float>>(), flat(nodes), offsets, targets, positions, bodies, forces,
              state, 0u);
  }
  return std::move(steps).job("force_layout", workload_types::simulation);
}

std::vector<float> force_layout_start(std::uint32_t nodes) {
  std::vector<float> positions(2 * std::size_t{nodes});
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const double angle = 2.399963229728653 * i, radius = std::sqrt(i + 0.5);  // the golden angle
    positions[2 * std::size_t{i}] = static_cast<float>(radius * std::cos(angle));
    positions[2 * std::size_t{i} + 1] = static_cast<float>(radius * std::sin(angle));
  }
  return positions;
}

NetworkLinks network_links(std::uint32_t nodes, std::span<const std::uint32_t> ends,
                           std::span<const float> weights) {
  const auto each_end = [&](auto f) {
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      const std::uint32_t a = ends[i], b = ends[i + 1];
      if (a >= nodes || b >= nodes) continue;
      f(a, b, i / 2);
      if (a != b) f(b, a, i / 2);
    }
  };
  NetworkLinks links{.offsets = std::vector<std::uint32_t>(std::size_t{nodes} + 1, 0), .targets = {}};
  each_end([&](std::uint32_t node, std::uint32_t, std::size_t) { ++links.offsets[node + 1]; });
  for (std::size_t node = 0; node < nodes; ++node) links.offsets[node + 1] += links.offsets[node];
  links.targets.resize(links.offsets[nodes]);
  if (!weights.empty()) links.weights.resize(links.offsets[nodes]);
  std::vector<std::uint32_t> next(links.offsets.begin(), links.offsets.end() - 1);
  each_end([&](std::uint32_t node, std::uint32_t target, std::size_t link) {
    if (link < weights.size()) links.weights[next[node]] = weights[link];
    links.targets[next[node]++] = target;
  });
  return links;
}

}  // namespace wye::workloads
