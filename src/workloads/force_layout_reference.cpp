#include <wye/workloads/force_layout.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace wye::inline v0::workloads {
namespace {

/// Return whether kernels use a coordinate and a force of this value.
bool usable_coordinate(double x) { return std::abs(x) <= 0x1p30; }
bool usable_force(double x) { return std::abs(x) <= 0x1p60; }

struct Planar {
  double x = 0, y = 0;
  double size() const { return std::sqrt(x * x + y * y); }
};

/// The nodes of one iteration. Nodes without a usable position have the mass 0.
struct NetworkState {
  std::span<const std::uint32_t> offsets, targets;
  const float* weights;
  ForceLayoutOptions options;
  std::vector<Planar> at;
  std::vector<double> mass;

  std::pair<std::size_t, std::size_t> links_of(std::size_t node) const {
    const std::size_t first = std::min<std::size_t>(offsets[node], targets.size());
    const std::size_t last = std::min<std::size_t>(offsets[node + 1], targets.size());
    return {first, std::clamp(last, first, first + 65536)};
  }

  /// Returns the force on a node, and adds the sizes of its parts to `sizes`.
  Planar force_on(std::size_t i, double& sizes) const {
    Planar force;
    const auto add = [&](double x, double y) {
      force.x += x;
      force.y += y;
      sizes += Planar{x, y}.size();
    };
    if (mass[i] == 0) return force;
    for (std::size_t j = 0; j < at.size(); ++j) {
      double x = at[i].x - at[j].x, square = x * x + (at[i].y - at[j].y) * (at[i].y - at[j].y);
      if (i == j || mass[j] == 0) continue;
      if (square < 0x1p-40) x = i > j ? 0x1p-7 : -0x1p-7;
      square = std::max(square, 0x1p-14);
      const double factor = double{options.repulsion} * mass[i] * mass[j] / square;
      add(x * factor, (at[i].y - at[j].y) * factor);
    }
    const double distance = std::max(at[i].size(), 0x1p-20);
    const double pull = double{options.gravity} * mass[i] / (options.strong_gravity ? 1.0 : distance);
    add(-at[i].x * pull, -at[i].y * pull);
    const auto [first, last] = links_of(i);
    for (std::size_t k = first; k < last; ++k) {
      const std::size_t j = targets[k];
      const double weight = weights == nullptr ? 1.0 : double{weights[k]};
      if (j < at.size() && mass[j] != 0 && weight > 0 && std::isfinite(weight))
        add(weight * (at[j].x - at[i].x), weight * (at[j].y - at[i].y));
    }
    if (usable_force(force.x) && usable_force(force.y)) return force;
    return {};
  }
};

}  // namespace

reference::ForceLayout reference::force_layout(std::span<const std::uint32_t> offsets,
                                               std::span<const std::uint32_t> targets,
                                               std::span<const float> positions, std::span<const float> state,
                                               ForceLayoutOptions options) {
  const std::size_t nodes = offsets.size() - 1;
  NetworkState layout{
      .offsets = offsets,
      .targets = targets,
      .weights = options.weights ? static_cast<const float*>(options.weights->operand().data) : nullptr,
      .options = options,
      .at = std::vector<Planar>(nodes),
      .mass = std::vector<double>(nodes)};
  ForceLayout result{
      .positions = {positions.begin(), positions.end()}, .state = {state.begin(), state.end()}, .sizes = {}};
  std::vector<Planar> forces(nodes);
  for (std::uint32_t iteration = 0; iteration < options.iterations; ++iteration) {
    for (std::size_t i = 0; i < nodes; ++i) {
      const double x = result.positions[2 * i], y = result.positions[2 * i + 1];
      const bool usable = usable_coordinate(x) && usable_coordinate(y);
      const auto [first, last] = layout.links_of(i);
      layout.mass[i] = usable ? 1.0 + static_cast<double>(last - first) : 0.0;
      layout.at[i] = usable ? Planar{x, y} : Planar{};
    }
    result.sizes.assign(nodes, 0.0);
    double swinging = 0, traction = 0;
    const auto before = [&](std::size_t i) {
      const double x = result.state[i], y = result.state[nodes + i];
      return usable_force(x) && usable_force(y) ? Planar{x, y} : Planar{};
    };
    for (std::size_t i = 0; i < nodes; ++i) {
      forces[i] = layout.force_on(i, result.sizes[i]);
      const Planar f = forces[i], old = before(i);
      swinging += layout.mass[i] * Planar{f.x - old.x, f.y - old.y}.size();
      traction += layout.mass[i] * Planar{f.x + old.x, f.y + old.y}.size() / 2;
    }
    const double last = result.state[2 * nodes];
    const double most = last > 0 && last <= 0x1p20 ? std::min(1.5 * last, 0x1p20) : swinging > 0 ? 0x1p20 : 0;
    const double speed =
        swinging > 0 ? std::min(double{options.tolerance} * traction / swinging, most) : most;
    for (std::size_t i = 0; i < nodes; ++i) {
      const Planar f = forces[i], old = before(i);
      const double swing = Planar{f.x - old.x, f.y - old.y}.size();
      const double factor =
          f.size() > 0 ? std::min(0.1 * speed / (1 + speed * std::sqrt(swing)), 10 / f.size()) : 0.0;
      if (layout.mass[i] != 0) {
        result.positions[2 * i] += f.x * factor;
        result.positions[2 * i + 1] += f.y * factor;
      }
      result.state[i] = f.x;
      result.state[nodes + i] = f.y;
    }
    result.state[2 * nodes] = speed;
    result.state[2 * nodes + 1] = swinging;
    result.state[2 * nodes + 2] = traction;
  }
  return result;
}

}  // namespace wye::workloads
