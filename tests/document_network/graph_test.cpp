#include "graph.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "layout.hpp"
#include "support/catch.hpp"

using namespace document_network;

namespace {

/// Cliques of the given sizes, each joined to the next by one weak link.
Neighbours cliques(const std::vector<std::uint32_t>& sizes) {
  Neighbours neighbours;
  std::uint32_t first = 0;
  for (const std::uint32_t size : sizes) {
    for (std::uint32_t a = first; a < first + size; ++a) {
      neighbours.emplace_back();
      for (std::uint32_t b = first; b < first + size; ++b)
        if (a != b) neighbours.back().push_back({b, 0.9f, 0.25f});
    }
    if (first > 0) neighbours[first].push_back({first - 1, 0.1f, 0.01f});
    first += size;
  }
  return neighbours;
}

/// Returns the number of pairs of discs that overlap or are nowhere.
int overlaps(const std::vector<Point>& points, const std::vector<double>& radii) {
  int pairs = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      pairs += !(std::hypot(points[i].x - points[j].x, points[i].y - points[j].y) >= radii[i] + radii[j]);
  return pairs;
}

/// Returns the number of discs that are not completely in `box`.
int outside(const std::vector<Point>& points, const std::vector<double>& radii, const Box& box) {
  int discs = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    discs += !(points[i].x - radii[i] >= box.x && points[i].x + radii[i] <= box.right() &&
               points[i].y - radii[i] >= box.y && points[i].y + radii[i] <= box.bottom());
  return discs;
}

}  // namespace

TEST_CASE("the nearest of a document are the most similar others", "[document_network]") {
  const std::vector<float> similarities{0.5f, 1.0f, 0.9f, 0.0f, 0.9f, 0.2f};
  const std::vector<Link> links = nearest(1, similarities, 3);
  REQUIRE(links.size() == 3);
  CHECK(links[0].to == 2);  // equal ones in their order
  CHECK(links[1].to == 4);
  CHECK(links[2].to == 0);
  CHECK(links[1].similarity == 0.9f);
  CHECK(nearest(1, similarities, 100).size() == 4);  // not itself, nor what it shares nothing with
  CHECK(nearest(0, std::vector<float>{1.0f}, 8).empty());
}

TEST_CASE("groups are what is linked within, largest first", "[document_network]") {
  const Groups groups = find_groups(cliques({4, 7, 5}));
  REQUIRE(groups.members.size() == 3);
  CHECK(groups.members[0].size() == 7);
  CHECK(groups.members[1].size() == 5);
  CHECK(groups.members[2].size() == 4);
  for (std::uint32_t document = 0; document < 16; ++document)
    CHECK(groups.of[document] == (document < 4 ? 2u : document < 11 ? 0u : 1u));
}

TEST_CASE("the nearest of many documents are those of a sort", "[document_network]") {
  std::mt19937 random(5);
  std::vector<float> similarities(3000);
  for (float& similarity : similarities) similarity = static_cast<float>(random() % 500) / 500.0f - 0.1f;
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < similarities.size(); ++i)
    if (i != 77 && similarities[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return similarities[a] > similarities[b]; });
  for (const std::size_t count : {0u, 1u, 8u, 3000u}) {
    const std::vector<Link> links = nearest(77, similarities, count);
    REQUIRE(links.size() == std::min(count, order.size()));
    for (std::size_t i = 0; i < links.size(); ++i) CHECK(links[i].to == order[i]);
  }
}

TEST_CASE("every document is in exactly one group, also one without links", "[document_network]") {
  std::mt19937 random(7);
  Neighbours neighbours(200);
  for (std::uint32_t a = 0; a < 190; ++a)
    for (int i = 0; i < 5; ++i) {
      const auto b = static_cast<std::uint32_t>(random() % 190);
      const float similarity = 0.1f + 0.8f * static_cast<float>(random() % 1000) / 1000.0f;
      if (b != a) neighbours[a].push_back({b, similarity, similarity / 5});
    }
  const Groups groups = find_groups(neighbours);
  std::vector<int> seen(200);
  for (std::size_t group = 0; group < groups.members.size(); ++group)
    for (const std::uint32_t member : groups.members[group]) {
      ++seen[member];
      CHECK(groups.of[member] == group);
    }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  CHECK(groups.members.size() > 10);
  CHECK(groups.members.size() < 60);
}

TEST_CASE("no document and one document have groups too", "[document_network]") {
  CHECK(find_groups({}).members.empty());
  CHECK(find_groups({{}}).members == std::vector<std::vector<std::uint32_t>>{{0}});
}

TEST_CASE("a layout keeps discs apart, inside, and is the same every time", "[document_network]") {
  const Neighbours neighbours = cliques({10, 20, 5});
  std::vector<double> radii(neighbours.size());
  for (std::size_t i = 0; i < radii.size(); ++i) radii[i] = 4 + static_cast<double>(i % 7);
  std::vector<Edge> edges;
  for (std::uint32_t a = 0; a < neighbours.size(); ++a)
    for (const Link& link : neighbours[a])
      edges.push_back({a, link.to, static_cast<double>(link.similarity)});
  const Box box{50, 60, 900, 700};
  auto runtime = open_runtime("cpu");
  REQUIRE(runtime);
  Runner runner(*runtime, "cpu", false);
  const auto lay_out_once = [&](const std::vector<double>& sizes, const std::vector<Edge>& links) {
    const auto made = lay_out(runner, sizes, links, box);
    REQUIRE(made);
    return *made;
  };
  const std::vector<Point> places = lay_out_once(radii, edges), again = lay_out_once(radii, edges);
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(places[i].x == again[i].x);
    CHECK(places[i].y == again[i].y);
    CHECK(places[i].x - radii[i] >= box.x);
    CHECK(places[i].y + radii[i] <= box.bottom());
    for (std::size_t j = 0; j < i; ++j)
      CHECK(std::hypot(places[i].x - places[j].x, places[i].y - places[j].y) > radii[i] + radii[j]);
  }
  CHECK(lay_out_once({}, {}).empty());
  CHECK(lay_out_once({5}, {}).size() == 1);
}

TEST_CASE("settled discs are apart and inside, and discs with room stay where they are",
          "[document_network]") {
  const Box box{70, 165, 1500, 1000};
  const std::size_t clusters = GENERATE(2u, 5u, 40u);
  CAPTURE(clusters);
  std::mt19937 random(3);
  const auto part = [&] { return static_cast<double>(random() % 10'000) / 10'000; };
  std::vector<Point> centers, points;
  for (std::size_t i = 0; i < clusters; ++i)
    centers.push_back({box.x + part() * box.width, box.y + part() * box.height});
  std::vector<double> radii;
  for (std::size_t i = 0; i < 400; ++i) {
    const Point& center = centers[i % clusters];
    points.push_back({center.x + 120 * (part() - 0.5), center.y + 120 * (part() - 0.5)});
    radii.push_back(3 + 15 * part() * part());
  }
  CHECK(overlaps(points, radii) > 50);
  settle(points, radii, box);
  CHECK(overlaps(points, radii) == 0);
  CHECK(outside(points, radii, box) == 0);

  const std::vector<Point> places{{100, 200}, {700, 200}, {100, 900}};
  std::vector<Point> same = places;
  settle(same, {26, 26, 26}, box);
  for (std::size_t i = 0; i < places.size(); ++i) {
    CHECK(same[i].x == places[i].x);
    CHECK(same[i].y == places[i].y);
  }
}

TEST_CASE("discs in one place are separated, and those without enough room remain in the box",
          "[document_network]") {
  const Box box{0, 0, 200, 100};
  std::vector<Point> points(12, {90, 50});
  std::vector<double> radii(points.size(), 8);
  settle(points, radii, box);
  CHECK(overlaps(points, radii) == 0);
  CHECK(outside(points, radii, box) == 0);

  points.assign(60, {10, 95});
  radii.assign(points.size(), 12);
  settle(points, radii, box);
  CHECK(outside(points, radii, box) == 0);
  points.clear();
  settle(points, {}, box);
  CHECK(points.empty());
}
