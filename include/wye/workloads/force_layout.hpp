#pragma once
/// Layouts of networks in two dimensions.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

struct ForceLayoutOptions {
  float repulsion = 1;           ///< at least 0; larger layouts are as the root of it
  float gravity = 1;             ///< at least 0; keeps parts without links to each other together
  bool strong_gravity = false;   ///< whether gravity grows with the distance from the origin
  float tolerance = 1;           ///< above 0; of oscillations: larger steps, less precision
  std::uint32_t iterations = 1;  ///< 1 to 1000
  /// The weight of each link, in the order of `targets`. Unset: all 1.
  std::optional<Read<float>> weights = std::nullopt;
};

/// Returns the number of elements of the state of a layout.
WYE_LOCAL constexpr std::uint64_t force_layout_state_size(std::uint64_t nodes) { return 2 * nodes + 3; }

/// Returns positions to begin with, x and y of each node: the seeds of a sunflower. They are evenly
/// spread, with no two at one place.
WYE_API std::vector<float> force_layout_start(std::uint32_t nodes);

/// The links of a network, grouped by node. Node v has links to `targets[offsets[v]]` up to, and
/// without, `targets[offsets[v + 1]]`. A link between two nodes is listed at both.
struct NetworkLinks {
  std::vector<std::uint32_t> offsets;  ///< nodes + 1
  std::vector<std::uint32_t> targets;
  std::vector<float> weights = {};  ///< of the targets; empty without weights
};

/// Groups links by node, on the calling thread. `ends` has two nodes for each link, `weights` is
/// empty or has one element for each link. Links of nodes that do not exist are left out. A link of
/// a node to itself is listed once.
WYE_API NetworkLinks network_links(std::uint32_t nodes, std::span<const std::uint32_t> ends,
                                   std::span<const float> weights = {});

/// Moves the nodes of a network by the forces between them, `iterations` times: ForceAtlas2 with all pairs of nodes.
///
/// The mass m of a node is 1 + the number of its links. Two nodes repel each other with repulsion m m' / distance. A link
/// pulls the node that lists it with weight * distance. Gravity pulls a node to the origin with gravity m, strong gravity with
/// gravity m * distance. The speed of all nodes is tolerance * traction / swinging, and rises by at most a half in one
/// iteration. A node with the force f and the swing s = |f - force before| moves by
/// f min(0.1 speed / (1 + speed sqrt(s)), 10 / |f|).
///
/// A node whose position is NaN, infinite or beyond 2^30 in a coordinate keeps it. Other nodes ignore it. A force
/// beyond 2^60 in a component counts as 0. Two nodes nearer than 2^-7 repel each other with repulsion m m' 2^14 * distance; at the same place
/// (nearer than 2^-20), the node of the larger number is pushed to the right, the other to the left.
/// Shape:   `offsets` and `targets` as in `NetworkLinks`; at most 65,536 nodes, less than 2^32 links. `positions` has x and y
///          of each node. `state` has `force_layout_state_size(nodes)` elements: the forces in x of all nodes, their forces in
///          y, the speed, the swinging (the sum of m s) and the traction (the sum of m |f + force before| / 2). Zeros begin a
///          layout. The next call continues it.
///          Of a node, the first 65,536 links count. Links to nodes that do not exist, and of a node to itself, pull nothing.
///          Offsets that decrease or point beyond the links give a layout without meaning; the job accesses no other memory.
/// Bound:   after one iteration, a component of a force is within 600 2^-24 times the sum of the sizes of the forces on its
///          node. Small differences grow from one iteration to the next: layouts of two devices differ.
/// Bits:    the same device gives the same bits.
/// Cost:    nodes^2 pairs and three steps for each iteration. Scratch memory of 20 bytes for each node.
/// Errors:  invalid_argument (sizes that do not match, an option out of its range; in memory of the host, a last offset that is
///          not the number of links, or a weight that is negative, NaN or infinite). In arrays and buffers such a weight
///          counts as 0.
/// Source:  Jacomy, Venturini, Heymann, Bastian, ForceAtlas2, a continuous graph layout algorithm, PLoS ONE 9 (2014).
WYE_API Job force_layout(Read<std::uint32_t> offsets, Read<std::uint32_t> targets, ReadWrite<float> positions,
                         ReadWrite<float> state, ForceLayoutOptions options = {});

namespace reference {
struct ForceLayout {
  std::vector<double> positions;
  std::vector<double> state;
  std::vector<double> sizes;  ///< the sum of the sizes of the forces on each node in the last iteration
};
/// Computes the same in float64, on the calling thread. Weights are host memory.
WYE_API ForceLayout force_layout(std::span<const std::uint32_t> offsets,
                                 std::span<const std::uint32_t> targets, std::span<const float> positions,
                                 std::span<const float> state, ForceLayoutOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
