#include "findings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

namespace document_network {
namespace {

constexpr std::size_t shown_at_top = 10, shown_pairs = 12;
/// Rounding makes equal vectors slightly unequal.
constexpr float same = 0.9999f;
constexpr float alike = 0.3f;

}  // namespace

std::vector<Ranked> highest_ranked(const std::vector<Document>& documents, const std::vector<float>& rank) {
  std::vector<std::size_t> order(rank.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rank[a] > rank[b]; });
  order.resize(std::min(order.size(), shown_at_top));
  std::vector<Ranked> top;
  for (const std::size_t i : order)
    top.push_back({documents[i].path, documents[i].label, static_cast<double>(rank[i])});
  return top;
}

std::vector<Pair> most_alike(const std::vector<Document>& documents, const Neighbours& neighbours) {
  const auto is_known = [](const Document& document) { return document.known; };
  const bool only_known = std::any_of(documents.begin(), documents.end(), is_known);
  const auto names = [&](std::uint32_t a, std::uint32_t b) {
    return std::any_of(neighbours[a].begin(), neighbours[a].end(),
                       [&](const Link& link) { return link.to == b; });
  };
  std::vector<Pair> pairs;
  for (std::uint32_t a = 0; a < documents.size(); ++a)
    for (const Link& link : neighbours[a]) {
      const std::uint32_t b = link.to;
      if (link.similarity < alike || link.similarity >= same || (b < a && names(b, a))) continue;
      if (only_known && !(documents[a].known && documents[b].known)) continue;
      pairs.push_back({documents[std::min(a, b)].label, documents[std::max(a, b)].label,
                       static_cast<double>(link.similarity)});
    }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const Pair& a, const Pair& b) { return a.similarity > b.similarity; });
  pairs.resize(std::min(pairs.size(), shown_pairs));
  return pairs;
}

std::string neighbours_json(const std::vector<Document>& documents, const Neighbours& neighbours) {
  using Json = nlohmann::ordered_json;
  Json paths = Json::array(), all = Json::array();
  for (const Document& document : documents) paths.push_back(document.path);
  for (const std::vector<Link>& links : neighbours) {
    Json of_one = Json::array();
    for (const Link& link : links) of_one.push_back({link.to, link.similarity});
    all.push_back(std::move(of_one));
  }
  const Json json{{"documents", std::move(paths)}, {"neighbours", std::move(all)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::size_t count_copies(const Neighbours& neighbours) {
  std::size_t copies = 0;
  for (std::uint32_t a = 0; a < neighbours.size(); ++a)
    copies += std::any_of(neighbours[a].begin(), neighbours[a].end(),
                          [&](const Link& link) { return link.similarity >= same && link.to < a; });
  return copies;
}

}  // namespace document_network
