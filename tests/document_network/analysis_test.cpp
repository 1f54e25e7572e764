#include "analysis.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "support/catch.hpp"

using namespace document_network;

namespace {

Analysis analysis_of(const Vectors& vectors) {
  std::vector<Document> documents;
  for (std::size_t i = 0; i < vectors.rows; ++i)
    documents.push_back({"/d/" + std::to_string(i), "d", 0, false});
  auto runtime = open_runtime("cpu");
  REQUIRE(runtime);
  Runner runner(*runtime, "cpu", false);
  wye::ProgressBars progress(stderr);
  auto analysis = analyse(documents, vectors, runner, progress);
  REQUIRE(analysis);
  return *std::move(analysis);
}

}  // namespace

TEST_CASE("documents have their nearest neighbours, in one block and in several", "[document_network]") {
  constexpr std::size_t columns = 12;
  const std::size_t rows = GENERATE(4000u, 4500u);  // up to 4096 are one block; of 4500, one has 3728
  Vectors vectors{std::vector<float>(rows * columns), rows, columns, {}};
  std::mt19937 random(9);
  for (float& value : vectors.values) value = static_cast<float>(random() % 1000) / 1000.0f;
  const Analysis analysis = analysis_of(vectors);
  REQUIRE(analysis.neighbours.size() == rows);
  CHECK(analysis.map.side == SimilarityMap::largest_side);

  const auto cosine = [&](std::size_t a, std::size_t b) {
    double product = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double x = static_cast<double>(vectors.values[a * columns + i]),
                   y = static_cast<double>(vectors.values[b * columns + i]);
      product += x * y, aa += x * x, bb += y * y;
    }
    return product / std::sqrt(aa * bb);
  };
  for (const std::size_t row : {std::size_t{0}, std::size_t{2000}, std::size_t{3728}, rows - 1}) {
    CAPTURE(rows, row);
    std::vector<double> expected;
    double sum = 0;
    for (std::size_t other = 0; other < rows; ++other) {
      sum += std::exp(10 * cosine(row, other));
      if (other != row) expected.push_back(cosine(row, other));
    }
    std::sort(expected.rbegin(), expected.rend());
    const std::vector<Link>& links = analysis.neighbours[row];
    REQUIRE(links.size() == 8);
    for (std::size_t i = 0; i < links.size(); ++i) {
      CHECK(static_cast<double>(links[i].similarity) == Approx(expected[i]).margin(1e-5));
      CHECK(cosine(row, links[i].to) == Approx(expected[i]).margin(1e-5));
      CHECK(static_cast<double>(links[i].weight) == Approx(std::exp(10 * expected[i]) / sum).epsilon(1e-3));
    }
  }
}

TEST_CASE("a row of the map is the mean of the documents that share it", "[document_network]") {
  // Two kinds of documents, which have nothing in common: two groups.
  constexpr std::size_t rows = 2500, first_kind = 1500, border = first_kind * 1200 / rows;
  Vectors vectors{std::vector<float>(rows * 2), rows, 2, {}};
  for (std::size_t i = 0; i < rows; ++i) vectors.values[2 * i + (i % 5 >= 3)] = 1 + static_cast<float>(i % 7);
  const Analysis analysis = analysis_of(vectors);
  REQUIRE(analysis.groups.members.size() == 2);
  REQUIRE(analysis.map.side == 1200);
  std::size_t wrong = 0;
  for (std::size_t y = 0; y < 1200; ++y)
    for (std::size_t x = 0; x < 1200; ++x)
      wrong += analysis.map.shades[y * 1200 + x] != ((y < border) == (x < border) ? 255 : 0);
  CHECK(wrong == 0);
}

TEST_CASE("the map of few documents has a row for each", "[document_network]") {
  Vectors vectors{{1, 0, 0, 0, 1, 0, 0, 3, 4}, 3, 3, {}};
  const Analysis analysis = analysis_of(vectors);
  REQUIRE(analysis.map.side == 3);
  std::vector<std::uint8_t> shades = analysis.map.shades;
  std::sort(shades.begin(), shades.end());
  CHECK(shades == std::vector<std::uint8_t>{0, 0, 0, 0, 153, 153, 255, 255, 255});  // 153: 0.6
}
