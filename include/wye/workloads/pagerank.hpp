#pragma once
/// PageRank: the importance of the nodes of a graph.
#include <wye/device/parameter.hpp>
#include <wye/scheduler/job.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wye::inline v0::workloads {

struct PageRankOptions {
  float damping = 0.85f;    ///< the part of a node's rank that its links pass on; 0 to 1
  float tolerance = 1e-6f;  ///< ends when the ranks of all nodes together change by no more in one iteration
  std::uint32_t iterations = 100;  ///< at most, 1 to 1000
  /// The preference of each node; the sum is arbitrary. The rank that links do not pass on, and the
  /// rank of nodes without links, is divided among the nodes in proportion. Unset: divided equally.
  std::optional<Read<float>> personalization = std::nullopt;
  /// The weight of each link, in the order of `sources`. A node divides its rank among its links in
  /// proportion to their weights. Only the ratios of the weights of one node count. Unset: all
  /// links alike.
  std::optional<Read<float>> weights = std::nullopt;
};

/// The result of a run of PageRank. The job writes it on the device.
struct PageRankSummary {
  std::uint32_t iterations = 0;     ///< done
  float residual = 0;               ///< change of all ranks together in the last one
  std::uint32_t converged = 0;      ///< 1 if the residual reached the tolerance
  std::uint32_t ignored_links = 0;  ///< from nodes that do not exist
};

/// The links of a graph, grouped by target: compressed sparse rows of the transposed adjacency
/// matrix. Node v is linked to by `sources[offsets[v]]` up to, and without, `sources[offsets[v +
/// 1]]`.
struct LinksTo {
  std::vector<std::uint32_t> offsets;  ///< nodes + 1
  std::vector<std::uint32_t> sources;
  std::vector<float> weights = {};  ///< of the sources; empty without weights
};

/// Transposes links that are grouped by source (compressed sparse rows of the adjacency matrix), on
/// the calling thread. Links to nodes that do not exist are left out.
WYE_API LinksTo links_to(std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> targets);

/// The same of links with weights, one for each of `targets`. A target beyond the last weight has
/// the weight 0.
WYE_API LinksTo links_to(std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> targets,
                         std::span<const float> weights);

/// Ranks the nodes of a graph. Each node divides its rank among its links, and receives the shares of the nodes that link to
/// it. A node without links divides its rank equally among all nodes, or by their preferences. With weights, this applies
/// also to a node whose weights are all 0. Each of several parallel links counts, and so do links of a node to itself.
/// Shape:   `offsets` and `sources` as in `LinksTo`, `ranks` one for each node, `summary` one element:
///          `std::span(&summary, 1)`. Ranks add up to 1. Less than 2^31 nodes, less than 2^32 links.
/// Bound:   once converged, the sum of |rank - exact rank| over all nodes is at most
///          2 tolerance damping / (1 - damping) + 1e-5, for any number of links to a node. The change of all ranks shrinks by
///          the damping in each iteration at least, down to any tolerance.
///          Offsets that decrease or point beyond the links give ranks without meaning; the job accesses no other memory.
/// Bits:    the same device gives the same bits.
/// Cost:    the whole run is one job: a device that has converged skips the remaining iterations. Scratch memory of 20 bytes
///          for each node, 24 with a personalization; with weights 36 for each node and 4 for each link.
/// Errors:  invalid_argument (sizes that do not match, an option out of its range; in memory of the host, a preference that is
///          negative, NaN or infinite, or a sum of preferences that is not between 2^-126 and 2^128, or a weight that is
///          negative, NaN or infinite). In arrays and buffers such a preference or weight counts as 0. If all preferences do, all
///          nodes are preferred alike.
/// Source:  Page, Brin, Motwani, Winograd, The PageRank citation ranking (1999).
WYE_API Job pagerank(Read<std::uint32_t> offsets, Read<std::uint32_t> sources, Write<float> ranks,
                     Write<PageRankSummary> summary, PageRankOptions options = {});

namespace reference {
struct PageRank {
  std::vector<double> ranks;
  std::uint32_t iterations = 0;
  double residual = 0;
};
/// The same in float64, on the calling thread. Personalization and weights are host memory.
WYE_API PageRank pagerank(std::span<const std::uint32_t> offsets, std::span<const std::uint32_t> sources,
                          PageRankOptions options = {});
}  // namespace reference

}  // namespace wye::workloads
