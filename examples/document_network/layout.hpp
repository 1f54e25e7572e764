#pragma once
/// Positions for the nodes of a graph.
#include <cstdint>
#include <vector>

#include "canvas.hpp"
#include "runner.hpp"

namespace document_network {

struct Edge {
  std::uint32_t a = 0, b = 0;
  double weight = 0;
};

/// Places discs of the given radii in `box` with short edges and without overlap, by wye's
/// force_layout and then by pushing overlapping discs apart on this thread. The same graph has the
/// same layout on the same device.
/// Errors: those of the job.
wye::Result<std::vector<Point>> lay_out(Runner& runner, const std::vector<double>& radii,
                                        const std::vector<Edge>& edges, const Box& box);

/// Pushes overlapping discs apart and into `box`, until they are three pixels apart or, if the box
/// is too crowded, 400 times. A disc has at most the width and height of the box.
void settle(std::vector<Point>& points, const std::vector<double>& radii, const Box& box);

}  // namespace document_network
