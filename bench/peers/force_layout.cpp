#include "peers/force_layout.hpp"

#include <algorithm>
#include <cmath>

namespace wye_bench {
namespace {

constexpr double repulsion = 1.0, gravity = 0.06;

Point& operator+=(Point& a, Point b) { return a.x += b.x, a.y += b.y, a; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(Point a, double s) { return {a.x * s, a.y * s}; }
double size(Point a) { return std::hypot(a.x, a.y); }

}  // namespace

void force_layout(std::vector<Point>& points, std::span<const std::uint32_t> ends, int rounds) {
  const std::size_t count = points.size();
  std::vector<Point> force(count), before(count);
  std::vector<double> mass(count, 1);
  for (const std::uint32_t end : ends) mass[end] += 1;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) force[i] = points[i] * (-gravity * mass[i]);
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t j = i + 1; j < count; ++j) {
        const Point apart = points[i] - points[j];
        const double square = std::max(apart.x * apart.x + apart.y * apart.y, 1e-4);
        const Point push = apart * (repulsion * mass[i] * mass[j] / square);
        force[i] += push;
        force[j] += push * -1;
      }
    for (std::size_t i = 0; i + 1 < ends.size(); i += 2) {
      const Point pull = points[ends[i + 1]] - points[ends[i]];
      force[ends[i]] += pull;
      force[ends[i + 1]] += pull * -1;
    }
    const double heat = 1.0 - static_cast<double>(round) / rounds;
    for (std::size_t i = 0; i < count; ++i) {
      const double swing = size(force[i] - before[i]), strength = size(force[i]);
      const double longest = heat * 2.0 / (strength + 1e-9);
      points[i] += force[i] * std::min(longest, 0.5 * heat / (mass[i] + swing));
      before[i] = force[i];
    }
  }
}

}  // namespace wye_bench
