#pragma once
/// A layout of a network as a program computes it without a library: float64, one thread, each pair
/// of nodes once.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wye_bench {

struct Point {
  double x = 0, y = 0;
};

/// Moves the points `rounds` times. `ends` has the two nodes of each link.
void force_layout(std::vector<Point>& points, std::span<const std::uint32_t> ends, int rounds);

}  // namespace wye_bench
