#include "layout.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <wye/workloads/force_layout.hpp>

namespace document_network {
namespace {

constexpr int settling_rounds = 400;
constexpr double gap = 3, same_place = 1e-6;

Point& operator+=(Point& a, Point b) { return a.x += b.x, a.y += b.y, a; }
Point operator-(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point operator*(Point a, double s) { return {a.x * s, a.y * s}; }

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

}  // namespace

void settle(std::vector<Point>& points, const std::vector<double>& radii, const Box& box) {
  if (points.empty()) return;
  const double widest = *std::max_element(radii.begin(), radii.end());
  std::vector<std::size_t> order(points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (int round = 0; round < settling_rounds; ++round) {
    bool moved = false;
    // Only discs that are near in x are compared. A disc that moves within a round may be compared
    // with too few; a round in which no disc moves has compared all that could overlap.
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return points[a].x != points[b].x ? points[a].x < points[b].x : a < b;
    });
    for (std::size_t first = 0; first < order.size(); ++first) {
      const std::size_t i = order[first];
      for (std::size_t next = first + 1; next < order.size(); ++next) {
        const std::size_t j = order[next];
        Point apart = points[j] - points[i];
        if (apart.x >= radii[i] + widest + gap) break;
        const double reach = radii[i] + radii[j] + gap, square = apart.x * apart.x + apart.y * apart.y;
        if (square >= reach * reach) continue;
        double distance = std::sqrt(square);
        if (distance < same_place) {  // in any direction, which differs from disc to disc
          const double turn = static_cast<double>(j);
          apart = {same_place * std::cos(turn), same_place * std::sin(turn)};
          distance = same_place;
        }
        const Point push = apart * ((reach - distance) / distance / 2);
        points[i] += push * -1;
        points[j] += push;
        moved = true;
      }
    }
    for (std::size_t i = 0; i < points.size(); ++i) {
      const Point inside{std::clamp(points[i].x, box.x + radii[i], box.right() - radii[i]),
                         std::clamp(points[i].y, box.y + radii[i], box.bottom() - radii[i])};
      moved = moved || inside.x != points[i].x || inside.y != points[i].y;
      points[i] = inside;
    }
    if (!moved) return;
  }
}

wye::Result<std::vector<Point>> lay_out(Runner& runner, const std::vector<double>& radii,
                                        const std::vector<Edge>& edges, const Box& box) {
  namespace workloads = wye::workloads;
  const auto count = static_cast<std::uint32_t>(radii.size());
  std::vector<std::uint32_t> ends;
  std::vector<float> weights;
  for (const Edge& edge : edges) {
    ends.insert(ends.end(), {edge.a, edge.b});
    weights.push_back(static_cast<float>(edge.weight));
  }
  const workloads::NetworkLinks links = workloads::network_links(count, ends, weights);
  std::vector<float> positions = workloads::force_layout_start(count),
                     state(workloads::force_layout_state_size(count));
  workloads::ForceLayoutOptions options{.gravity = 0.06f, .strong_gravity = true, .iterations = 600};
  options.weights = links.weights;
  const auto done =
      runner.run("layout", workloads::force_layout(links.offsets, links.targets, positions, state, options));
  if (!done) return done.error();

  std::vector<Point> points(count);
  for (std::size_t i = 0; i < count; ++i)
    points[i] = {static_cast<double>(positions[2 * i]), static_cast<double>(positions[2 * i + 1])};
  fit(points, box);
  settle(points, radii, box);
  return points;
}

}  // namespace document_network
