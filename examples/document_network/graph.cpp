#include "graph.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <tuple>

namespace document_network {

std::vector<Link> nearest(std::uint32_t self, std::span<const float> similarities, std::size_t count) {
  std::vector<Link> links;
  if (count == 0) return links;
  links.reserve(std::min(count, similarities.size()) + 1);
  float least = 0;  // that a document must exceed
  for (std::uint32_t to = 0; to < similarities.size(); ++to) {
    if (!(similarities[to] > least) || to == self) continue;
    const auto place =
        std::upper_bound(links.begin(), links.end(), similarities[to],
                         [](float value, const Link& link) { return value > link.similarity; });
    links.insert(place, {to, similarities[to], 0.0f});
    if (links.size() > count) links.pop_back();
    if (links.size() == count) least = links.back().similarity;
  }
  return links;
}

namespace {

/// An ordered group. Joining two groups puts similar ends side by side.
using Chain = std::vector<std::uint32_t>;
using Affinity = std::map<std::pair<std::uint32_t, std::uint32_t>, double>;

Chain joined(Chain a, Chain b, const Affinity& affinity) {
  const auto between = [&](std::uint32_t x, std::uint32_t y) {
    const auto found = affinity.find(std::minmax(x, y));
    return found == affinity.end() ? 0.0 : found->second;
  };
  const double plain = between(a.back(), b.front()), swapped = between(a.front(), b.back());
  const double tails = between(a.back(), b.back()), heads = between(a.front(), b.front());
  const double best = std::max({plain, swapped, tails, heads});
  if (best > plain) {
    if (best == tails)
      std::reverse(b.begin(), b.end());
    else if (best == heads)
      std::reverse(a.begin(), a.end());
    else
      std::swap(a, b);
  }
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

Groups find_groups(const Neighbours& neighbours) {
  const auto count = static_cast<std::uint32_t>(neighbours.size());

  // The undirected graph; `between[a][b]` is the weight of all links between groups a and b.
  std::vector<std::map<std::uint32_t, double>> between(count);
  std::vector<double> degree(count);
  Affinity affinity;
  double total = 0;
  for (std::uint32_t a = 0; a < count; ++a)
    for (const Link& link : neighbours[a]) {
      between[a][link.to] += link.weight;
      between[link.to][a] += link.weight;
      degree[a] += link.weight;
      degree[link.to] += link.weight;
      affinity[std::minmax(a, link.to)] = link.similarity;
      total += 2.0 * link.weight;
    }

  // The gain of joining two groups, best first. The gain of an entry may be outdated: it falls when
  // one of the groups grows, and such an entry is corrected when it is first. It rises only with the
  // weight between the groups, and then there is a new entry.
  struct Join {
    double gain;
    std::uint32_t a, b;
    bool operator<(const Join& other) const {
      return std::tie(gain, other.a, other.b) < std::tie(other.gain, a, b);
    }
  };
  const auto gain = [&](std::uint32_t a, std::uint32_t b) {
    return between[a].at(b) / total - degree[a] * degree[b] / (total * total);
  };
  std::priority_queue<Join> joins;
  for (std::uint32_t a = 0; a < count; ++a)
    for (const auto& [b, weight] : between[a])
      if (a < b) joins.push({gain(a, b), a, b});

  std::vector<Chain> chains(count);
  for (std::uint32_t a = 0; a < count; ++a) chains[a] = {a};
  while (!joins.empty() && joins.top().gain > 0) {
    auto [best, a, b] = joins.top();
    joins.pop();
    if (chains[a].empty() || chains[b].empty()) continue;
    if (const double now = gain(a, b); now != best) {
      if (now < best) joins.push({now, a, b});
      continue;
    }
    if (between[a].size() < between[b].size()) std::swap(a, b);
    chains[a] = joined(std::move(chains[a]), std::move(chains[b]), affinity);
    chains[b].clear();
    between[a].erase(b);
    between[b].erase(a);
    for (const auto& [other, weight] : between[b]) {
      between[a][other] += weight;
      between[other][a] += weight;
      between[other].erase(b);
    }
    degree[a] += degree[b];
    for (const auto& [other, weight] : between[b])
      joins.push({gain(a, other), std::min(a, other), std::max(a, other)});
    between[b].clear();
  }

  Groups groups;
  for (Chain& chain : chains)
    if (!chain.empty()) groups.members.push_back(std::move(chain));
  std::stable_sort(groups.members.begin(), groups.members.end(),
                   [](const Chain& a, const Chain& b) { return a.size() > b.size(); });
  groups.of.resize(count);
  for (std::uint32_t group = 0; group < groups.members.size(); ++group)
    for (const std::uint32_t member : groups.members[group]) groups.of[member] = group;
  return groups;
}

}  // namespace document_network
