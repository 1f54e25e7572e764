#include "layout.hpp"

#include <algorithm>
#include <cmath>

namespace document_network {
namespace {

constexpr int rounds = 600, settling_rounds = 200;
constexpr double repulsion = 1.0, gravity = 0.06, gap = 3;

Point& operator+=(Point& a, Point b) { return a.x += b.x, a.y += b.y, a; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(Point a, double s) { return {a.x * s, a.y * s}; }
double size(Point a) { return std::hypot(a.x, a.y); }

/// Places points as the seeds of a sunflower: evenly, and no two at one place.
std::vector<Point> spiral(std::size_t count) {
  std::vector<Point> points(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double turn = 2.399963 * static_cast<double>(i), radius = std::sqrt(static_cast<double>(i) + 0.5);
    points[i] = {radius * std::cos(turn), radius * std::sin(turn)};
  }
  return points;
}

/// Moves and scales the points to fill `box`.
void fit(std::vector<Point>& points, const Box& box) {
  if (points.empty()) return;
  Point low = points[0], high = points[0];
  for (const Point& p : points) {
    low = {std::min(low.x, p.x), std::min(low.y, p.y)};
    high = {std::max(high.x, p.x), std::max(high.y, p.y)};
  }
  const Point span = high - low;
  for (Point& p : points)
    p = {box.x + box.width * (span.x > 0 ? (p.x - low.x) / span.x : 0.5),
         box.y + box.height * (span.y > 0 ? (p.y - low.y) / span.y : 0.5)};
}

/// Separates overlapping discs.
void settle(std::vector<Point>& points, const std::vector<double>& radii, const Box& box) {
  for (int round = 0; round < settling_rounds; ++round) {
    bool moved = false;
    for (std::size_t i = 0; i < points.size(); ++i)
      for (std::size_t j = i + 1; j < points.size(); ++j) {
        const Point apart = points[j] - points[i];
        const double distance = std::max(size(apart), 1e-6), missing = radii[i] + radii[j] + gap - distance;
        if (missing <= 0) continue;
        const Point push = apart * (missing / distance / 2);
        points[i] += push * -1;
        points[j] += push;
        moved = true;
      }
    for (std::size_t i = 0; i < points.size(); ++i)
      points[i] = {std::clamp(points[i].x, box.x + radii[i], box.right() - radii[i]),
                   std::clamp(points[i].y, box.y + radii[i], box.bottom() - radii[i])};
    if (!moved) return;
  }
}

}  // namespace

std::vector<Point> lay_out(const std::vector<double>& radii, const std::vector<Edge>& edges, const Box& box) {
  const std::size_t count = radii.size();
  std::vector<Point> points = spiral(count), force(count), before(count);
  std::vector<double> mass(count, 1);
  for (const Edge& edge : edges) {
    mass[edge.a] += edge.weight;
    mass[edge.b] += edge.weight;
  }
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
    for (const Edge& edge : edges) {
      const Point pull = (points[edge.b] - points[edge.a]) * edge.weight;
      force[edge.a] += pull;
      force[edge.b] += pull * -1;
    }
    // Steps become shorter; a node that oscillates takes the shortest.
    const double heat = 1.0 - static_cast<double>(round) / rounds;
    for (std::size_t i = 0; i < count; ++i) {
      const double swing = size(force[i] - before[i]), strength = size(force[i]);
      const double longest = heat * 2.0 / (strength + 1e-9);
      points[i] += force[i] * std::min(longest, 0.5 * heat / (mass[i] + swing));
      before[i] = force[i];
    }
  }
  fit(points, box);
  settle(points, radii, box);
  return points;
}

}  // namespace document_network
