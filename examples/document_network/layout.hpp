#pragma once
/// Positions for the nodes of a graph.
#include <cstdint>
#include <vector>

#include "canvas.hpp"

namespace document_network {

struct Edge {
  std::uint32_t a = 0, b = 0;
  double weight = 0;
};

/// Places discs of the given radii in `box` with short edges and without overlap. The same graph has the same layout.
/// Cost:   the square of the number of discs, a few hundred times.
/// Source: Jacomy et al., "ForceAtlas2, a continuous graph layout algorithm", 2014.
std::vector<Point> lay_out(const std::vector<double>& radii, const std::vector<Edge>& edges, const Box& box);

}  // namespace document_network
