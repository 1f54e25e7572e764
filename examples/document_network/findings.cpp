#include "findings.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

namespace document_network {
namespace {

constexpr std::size_t shown_at_top = 10, shown_pairs = 12;
/// Rounding makes equal vectors slightly unequal.
constexpr float same = 0.9999f;
constexpr float alike = 0.3f;
constexpr std::size_t shown_of_both = 5, shown_answers = 8;

/// Returns the places of `values`, the largest first.
std::vector<std::size_t> ordered(const std::vector<float>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return values[a] > values[b]; });
  return order;
}

/// Returns whether a document equals an earlier one.
bool is_copy(std::size_t document, const Neighbours& neighbours) {
  return std::any_of(neighbours[document].begin(), neighbours[document].end(),
                     [&](const Link& link) { return link.similarity >= same && link.to < document; });
}

/// Returns the document whose row is nearest to that of `document` and not equal, with the cosine.
Link nearest_row(std::size_t document, const Vectors& vectors) {
  const auto product = [&](std::size_t a, std::size_t b) {
    const float* const x = vectors.values.data() + a * vectors.columns;
    const float* const y = vectors.values.data() + b * vectors.columns;
    return std::inner_product(x, x + vectors.columns, y, 0.0);
  };
  const double own = product(document, document);
  Link best{.to = static_cast<std::uint32_t>(document), .similarity = -1};
  for (std::size_t other = 0; other < vectors.rows; ++other) {
    const double lengths = own * product(other, other);
    const auto cosine = static_cast<float>(lengths > 0 ? product(document, other) / std::sqrt(lengths) : 0);
    if (other != document && cosine > best.similarity && cosine < same)
      best = {.to = static_cast<std::uint32_t>(other), .similarity = cosine};
  }
  return best;
}

}  // namespace

std::vector<Ranked> highest_ranked(const std::vector<Document>& documents, const std::vector<float>& rank) {
  std::vector<std::size_t> order = ordered(rank);
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

std::vector<NearestOfBoth> nearest_of_both(const std::vector<Document>& documents, const Vectors& words,
                                           const Neighbours& by_meaning, const std::vector<float>& rank) {
  std::vector<NearestOfBoth> all;
  for (const std::size_t document : ordered(rank)) {
    if (all.size() == shown_of_both) break;
    if (is_copy(document, by_meaning)) continue;
    const auto link = std::find_if(by_meaning[document].begin(), by_meaning[document].end(),
                                   [](const Link& one) { return one.similarity < same; });
    const Link by_words = nearest_row(document, words);
    if (link == by_meaning[document].end() || by_words.to == document) continue;
    all.push_back({documents[document].label, documents[by_words.to].label, documents[link->to].label,
                   double{by_words.similarity}, double{link->similarity}});
  }
  return all;
}

std::vector<Answer> best_answers(const std::vector<Document>& documents, const Meaning& meaning) {
  std::vector<Answer> best;
  std::vector<const NearPassage*> used;
  for (const NearPassage& near : meaning.near) {
    if (best.size() == shown_answers) break;
    const auto has_it = [&](const std::vector<std::uint32_t>& of_one) {
      return std::find(of_one.begin(), of_one.end(), near.passage) != of_one.end();
    };
    const auto first = std::find_if(meaning.passages_of.begin(), meaning.passages_of.end(), has_it);
    const Document& document = documents[static_cast<std::size_t>(first - meaning.passages_of.begin())];
    const bool is_known =
        std::any_of(best.begin(), best.end(), [&](const Answer& one) { return one.path == document.path; }) ||
        std::any_of(used.begin(), used.end(),
                    [&](const NearPassage* one) { return cosine(one->vector, near.vector) >= nearly_equal; });
    if (is_known) continue;
    used.push_back(&near);
    best.push_back({document.path, document.label, double{near.similarity}, near.sentence,
                    meaning.passages[near.passage]});
  }
  return best;
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
  for (std::size_t a = 0; a < neighbours.size(); ++a) copies += is_copy(a, neighbours);
  return copies;
}

}  // namespace document_network
