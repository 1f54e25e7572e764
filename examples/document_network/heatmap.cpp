#include <algorithm>
#include <array>
#include <cmath>

#include "canvas.hpp"
#include "pictures.hpp"

namespace document_network {
namespace {

constexpr int side = static_cast<int>(SimilarityMap::largest_side);
constexpr Box map_box{260, 170, side, side};
constexpr Box scale_box{1500, 170, 26, side};

std::vector<std::uint32_t> pixels(const SimilarityMap& map) {
  std::array<std::uint32_t, 256> palette{};
  for (std::size_t shade = 0; shade < palette.size(); ++shade) {
    const Color color = viridis(static_cast<double>(shade) / 255);
    const auto byte = [](double part) { return static_cast<std::uint32_t>(std::lround(part * 255)); };
    palette[shade] = byte(color.red) << 16 | byte(color.green) << 8 | byte(color.blue);
  }
  std::vector<std::uint32_t> image(std::size_t{side} * side);
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x)
      image[y * side + x] = palette[map.shades[y * map.side / side * map.side + x * map.side / side]];
  return image;
}

/// Draws the scale.
void draw_scale(Canvas& page) {
  for (int y = 0; y < side; ++y)
    page.fill({scale_box.x, scale_box.y + y, scale_box.width, 1.5},
              viridis(1.0 - static_cast<double>(y) / side));
  for (int tick = 0; tick <= 5; ++tick) {
    const double y = scale_box.bottom() - side * tick / 5.0;
    page.line({scale_box.right(), y}, {scale_box.right() + 7, y}, colors::quiet, 1.5);
    page.write({scale_box.right() + 13, y + 6},
               tick == 5   ? "1"
               : tick == 0 ? "0"
                           : "0." + std::to_string(2 * tick),
               {.size = 17, .color = colors::quiet});
  }
  page.write({scale_box.x - 2, scale_box.y - 14}, "similarity", {.size = 17, .color = colors::quiet});
}

}  // namespace

std::string draw_heatmap(const std::vector<Document>& documents, const SimilarityMap& map,
                         const Groups& groups, const std::vector<float>& rank, bool by_meaning) {
  Canvas page(1640, 1480);
  page.headline("Similar documents", "Similarity of all pairs of " + with_commas(documents.size()) +
                                         " documents: cosine of their " +
                                         (by_meaning ? "vectors by meaning" : "TF-IDF vectors") +
                                         ". Documents of one group are side by side.");
  page.image({map_box.x, map_box.y}, pixels(map), side);
  draw_scale(page);

  // Groups that are tall enough for a line of text get a bracket and a name.
  const double row = map_box.height / static_cast<double>(documents.size());
  const Style name{.size = 16, .align = 1};
  double top = map_box.y;
  for (std::size_t group = 0; group < groups.members.size(); ++group) {
    const double height = row * static_cast<double>(groups.members[group].size());
    if (height >= 19) {
      const double x = map_box.x - 12;
      page.line({x, top + 2}, {x, top + height - 2}, kind_color(group), 5);
      const std::string& label = documents[speaker(groups, group, documents, rank)].label;
      page.write({x - 12, top + height / 2 + 6}, page.fit(label, x - 40, name), name);
    }
    top += height;
  }
  page.footnote(
      "Each group is found by its links alone and named after its best known or highest ranked document.");
  return page.png();
}

}  // namespace document_network
