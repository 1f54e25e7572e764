#include <algorithm>
#include <array>
#include <cmath>

#include "canvas.hpp"
#include "pictures.hpp"

namespace document_network {
namespace {

constexpr int side = 1200;
constexpr Box map_box{260, 170, side, side};
constexpr Box scale_box{1500, 170, 26, side};

/// Returns the documents that row or column `pixel` shows: [first, last).
std::pair<std::size_t, std::size_t> shown_in(std::size_t pixel, std::size_t documents) {
  const std::size_t first = pixel * documents / side;
  return {first, std::max(first + 1, (pixel + 1) * documents / side)};
}

std::vector<std::uint32_t> pixels(const SimilarityMap& map, const std::vector<std::uint32_t>& order) {
  std::array<std::uint32_t, 256> palette{};
  for (std::size_t shade = 0; shade < palette.size(); ++shade) {
    const Color color = viridis(static_cast<double>(shade) / 255);
    const auto byte = [](double part) { return static_cast<std::uint32_t>(std::lround(part * 255)); };
    palette[shade] = byte(color.red) << 16 | byte(color.green) << 8 | byte(color.blue);
  }
  std::vector<std::uint32_t> image(std::size_t{side} * side);
  for (std::size_t y = 0; y < side; ++y)
    for (std::size_t x = 0; x < side; ++x) {
      const auto rows = shown_in(y, order.size()), columns = shown_in(x, order.size());
      std::size_t sum = 0;
      for (std::size_t row = rows.first; row < rows.second; ++row)
        for (std::size_t column = columns.first; column < columns.second; ++column)
          sum += map.shades[order[row] * map.side + order[column]];
      const std::size_t cells = (rows.second - rows.first) * (columns.second - columns.first);
      image[y * side + x] = palette[sum / cells];
    }
  return image;
}

/// Draws the scale, with a histogram of the similarities.
void draw_scale(Canvas& page, const SimilarityMap& map) {
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
  (void)map;
}

}  // namespace

std::string draw_heatmap(const std::vector<Document>& documents, const SimilarityMap& map,
                         const Groups& groups, const std::vector<float>& rank) {
  std::vector<std::uint32_t> order;
  for (const auto& members : groups.members) order.insert(order.end(), members.begin(), members.end());

  Canvas page(1640, 1480);
  page.headline("Similar documents",
                "Similarity of all pairs of " + with_commas(documents.size()) +
                    " documents: cosine of their TF-IDF vectors. Documents of one group are side by side.");
  page.image({map_box.x, map_box.y}, pixels(map, order), side);
  draw_scale(page, map);

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
