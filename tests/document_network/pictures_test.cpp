#include "pictures.hpp"

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "canvas.hpp"
#include "labels.hpp"
#include "support/catch.hpp"

using namespace document_network;

namespace {

struct Scene {
  std::vector<Document> documents;
  SimilarityMap map;
  Neighbours neighbours;
  Groups groups;
  std::vector<float> rank;
  std::vector<Moment> moments;
};

Scene scene(std::size_t count, std::int64_t span) {
  std::mt19937 random(11);
  Scene s;
  s.map = {count, std::vector<std::uint8_t>(count * count, 40)};
  for (std::uint32_t i = 0; i < count; ++i) {
    s.documents.push_back(
        {"/d/" + std::to_string(i), i == 0 ? "odd\n\xff\xfe name" : "document " + std::to_string(i),
         1'600'000'000 + static_cast<std::int64_t>(random() % 1000) * span / 1000, i % 9 == 0});
    s.map.shades[i * count + i] = 255;
    s.neighbours.emplace_back();
    for (std::uint32_t k = 1; k < 4; ++k) {
      const auto other = static_cast<std::uint32_t>((i / 10 * 10 + (i + k) % 10) % count);
      if (other != i) s.neighbours.back().push_back({other, 0.5f, 0.3f});
    }
    s.rank.push_back(static_cast<float>(1 + random() % 100) / 1000.0f);
  }
  s.groups = find_groups(s.neighbours);
  for (std::uint32_t i = 0; i < count; ++i)
    s.moments.push_back({0.5, static_cast<double>(s.rank[i]), 0.9, s.groups.of[i]});
  return s;
}

bool is_png(const std::string& bytes) {
  return bytes.size() > 1000 && bytes.rfind("\x89PNG\r\n\x1a\n", 0) == 0;
}

std::string network_of(const Scene& s) {
  auto runtime = open_runtime("cpu");
  REQUIRE(runtime);
  Runner runner(*runtime, "cpu", false);
  const auto picture = draw_network(runner, s.documents, s.neighbours, s.groups, s.rank);
  REQUIRE(picture);
  return *picture;
}

}  // namespace

TEST_CASE("there are three pictures of any number of documents, of any age", "[document_network]") {
  using Size = std::pair<std::size_t, std::int64_t>;  // documents, and seconds between the first and the last
  const auto [count, span] = GENERATE(from_range([] {
    std::vector<Size> sizes{{500, 8'640'000}};
    for (const std::size_t documents : {1u, 2u, 3u, 60u})
      for (const std::int64_t seconds : {0, 30, 90'000, 8'640'000, 1'728'000'000})
        sizes.emplace_back(documents, seconds);
    return sizes;
  }()));
  CAPTURE(count, span);
  const Scene s = scene(count, span);
  CHECK(is_png(draw_heatmap(s.documents, s.map, s.groups, s.rank)));
  CHECK(is_png(network_of(s)));
  CHECK(is_png(draw_timeline(s.documents, s.moments, s.groups, s.rank, 2.0)));
}

TEST_CASE("a picture is the same every time", "[document_network]") {
  const Scene s = scene(60, 86'400 * 1000);
  CHECK(network_of(s) == network_of(s));
}

TEST_CASE("the heatmap names the kind of its vectors", "[document_network]") {
  const Scene s = scene(20, 1000);
  const auto draw = [&](bool by_meaning) {
    return draw_heatmap(s.documents, s.map, s.groups, s.rank, by_meaning);
  };
  CHECK(draw(true) != draw(false));
}

TEST_CASE("ranks and importances of zero can be drawn", "[document_network]") {
  Scene s = scene(20, 1000);
  for (float& rank : s.rank) rank = 0;
  for (Moment& moment : s.moments) moment.importance = 0;
  CHECK(is_png(network_of(s)));
  CHECK(is_png(draw_timeline(s.documents, s.moments, s.groups, s.rank, 2.0)));
}

TEST_CASE("labels do not lie on one another, and give up where there is no room", "[document_network]") {
  Canvas page(200, 100);
  Labels labels(page);
  const Box all{0, 0, 200, 100};
  CHECK(labels.place({100, 50}, 5, "a", {}, all));
  CHECK_FALSE(labels.place({100, 50}, 5, "text that is far too wide for this page", {}, all));
  labels.keep_clear(all);
  CHECK_FALSE(labels.place({20, 20}, 5, "b", {}, all));
}

TEST_CASE("the scale of colours is bounded and grows lighter", "[document_network]") {
  const auto light = [](Color c) { return 0.2126 * c.red + 0.7152 * c.green + 0.0722 * c.blue; };
  for (int i = 1; i <= 100; ++i) CHECK(light(viridis(i / 100.0)) > light(viridis((i - 1) / 100.0)));
  CHECK(light(viridis(-5)) == light(viridis(0)));
  CHECK(light(viridis(7)) == light(viridis(1)));
}

TEST_CASE("large numbers have commas", "[document_network]") {
  CHECK(with_commas(0) == "0");
  CHECK(with_commas(999) == "999");
  CHECK(with_commas(1000) == "1,000");
  CHECK(with_commas(1234567) == "1,234,567");
}
