#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "canvas.hpp"
#include "labels.hpp"
#include "layout.hpp"
#include "pictures.hpp"

namespace document_network {
namespace {

constexpr std::size_t most_nodes = 400, most_names = 45;
constexpr double largest_circle = 26, smallest_circle = 3;
constexpr Box drawing{70, 165, 1500, 1000}, names_within{20, 135, 1600, 1065};

/// Returns all documents, highest rank first.
std::vector<std::uint32_t> by_rank(const std::vector<float>& rank) {
  std::vector<std::uint32_t> order(rank.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rank[a] > rank[b]; });
  return order;
}

/// Returns the documents to label, most important first: well-known ones, each group's speaker,
/// then by rank.
std::vector<std::uint32_t> wanted_names(const std::vector<Document>& documents, const Groups& groups,
                                        const std::vector<float>& rank,
                                        const std::vector<std::uint32_t>& shown) {
  std::vector<std::uint32_t> names;
  for (const std::uint32_t document : shown)
    if (documents[document].known) names.push_back(document);
  for (std::size_t group = 0; group < groups.members.size(); ++group)
    if (groups.members[group].size() > 2) names.push_back(speaker(groups, group, documents, rank));
  names.insert(names.end(), shown.begin(), shown.end());
  return names;
}

/// Draws the legend of sizes and colours.
void draw_key(Canvas& page, double top_rank, std::size_t documents) {
  double x = 84;
  const double y = page.height() - 92;
  page.write({60, y - 34}, "PageRank", {.size = 16, .color = colors::quiet});
  for (const double part : {1.0, 0.5, 0.25, 0.1}) {
    const double strength = std::sqrt(part), radius = std::max(smallest_circle, largest_circle * strength);
    char times[32];
    std::snprintf(times, sizeof times, "%.*f x mean",
                  part * top_rank * static_cast<double>(documents) < 10 ? 1 : 0,
                  part * top_rank * static_cast<double>(documents));
    page.disc({x, y}, radius, viridis(strength));
    page.write({x + radius + 8, y + 6}, times, {.size = 16, .color = colors::quiet});
    x += radius + 150;
  }
}

}  // namespace

wye::Result<std::string> draw_network(Runner& runner, const std::vector<Document>& documents,
                                      const Neighbours& neighbours, const Groups& groups,
                                      const std::vector<float>& rank) {
  std::vector<std::uint32_t> shown = by_rank(rank);
  shown.resize(std::min(shown.size(), most_nodes));
  constexpr std::uint32_t hidden = ~std::uint32_t{0};
  std::vector<std::uint32_t> node(documents.size(), hidden);
  for (std::uint32_t i = 0; i < shown.size(); ++i) node[shown[i]] = i;

  // A disc's area is its document's rank.
  const double top_rank = std::max(1e-30, static_cast<double>(rank[shown[0]]));
  std::vector<double> strength, radii;
  for (const std::uint32_t document : shown) {
    strength.push_back(std::sqrt(static_cast<double>(rank[document]) / top_rank));
    radii.push_back(std::max(smallest_circle, largest_circle * strength.back()));
  }
  std::vector<Edge> edges;
  for (std::uint32_t i = 0; i < shown.size(); ++i)
    for (const Link& link : neighbours[shown[i]])
      if (node[link.to] != hidden) edges.push_back({i, node[link.to], static_cast<double>(link.similarity)});
  const auto laid_out = lay_out(runner, radii, edges, drawing);
  if (!laid_out) return laid_out.error();
  const std::vector<Point>& places = *laid_out;

  Canvas page(1640, 1330);
  for (const Edge& edge : edges)
    page.curve(places[edge.a], places[edge.b], 0.08,
               colors::quiet.fade(0.1 + 0.35 * edge.weight * edge.weight), 1.1);
  for (std::size_t i = shown.size(); i-- > 0;) {
    page.disc(places[i], radii[i] + 1.5, colors::paper);
    page.disc(places[i], radii[i], viridis(strength[i]));
  }

  Labels labels(page);
  for (std::size_t i = 0; i < shown.size(); ++i)
    if (radii[i] > 5) labels.keep_clear(places[i], radii[i]);
  std::vector<bool> named(shown.size());
  std::size_t names = 0;
  for (const std::uint32_t document : wanted_names(documents, groups, rank, shown)) {
    const std::uint32_t i = node[document];
    if (i == hidden || named[i] || names == most_names) continue;
    const Style style{
        .size = documents[document].known ? 18.0 : 15.0, .bold = documents[document].known, .outline = true};
    named[i] = true;
    names += labels.place(places[i], radii[i], page.fit(documents[document].label, 220, style), style,
                          names_within);
  }

  const std::string all = with_commas(documents.size());
  page.headline(
      "Nearest neighbours",
      (shown.size() < documents.size()
           ? "The " + with_commas(shown.size()) + " highest ranked of " + all + " documents"
           : all + (documents.size() == 1 ? " document" : " documents")) +
          ", each linked to its nearest neighbours. The more attention a document gets, the larger it is.");
  draw_key(page, top_rank, documents.size());
  page.footnote(
      "Rank: PageRank over the links, weighted by attention. Distances have a meaning; positions have "
      "none.");
  return page.png();
}

}  // namespace document_network
