#include "trie.hpp"

#include <algorithm>
#include <cstring>

namespace wye::inline v0::models {

Trie::Trie(std::span<std::pair<std::string_view, std::uint32_t>> strings) : nodes_(1), labels_(1, '\0') {
  std::ranges::sort(strings);
  struct Open {
    std::size_t begin, end;  // the strings below a node
    std::size_t depth;
  };
  // A node's place in `open` is its number: the children of a node become neighbours.
  std::vector<Open> open{{0, strings.size(), 0}};
  for (Node node = 0; node < open.size(); ++node) {
    auto [begin, end, depth] = open[node];
    if (begin < end && strings[begin].first.size() == depth) nodes_[node].value = strings[begin++].second;
    nodes_[node].children = static_cast<Node>(open.size());
    while (begin < end) {
      const char label = strings[begin].first[depth];
      std::size_t next = begin + 1;
      while (next < end && strings[next].first[depth] == label) ++next;
      open.push_back({begin, next, depth + 1});
      nodes_.emplace_back();
      labels_ += label;
      ++nodes_[node].count;
      begin = next;
    }
  }
}

std::optional<Trie::Node> Trie::child(Node node, char label) const noexcept {
  const Inner& inner = nodes_[node];
  const char* const labels = labels_.data() + inner.children;
  const void* const found = inner.count == 0 ? nullptr : std::memchr(labels, label, inner.count);
  if (found == nullptr) return std::nullopt;
  return inner.children + static_cast<Node>(static_cast<const char*>(found) - labels);
}

std::optional<Trie::Node> Trie::find(std::string_view text, Node from) const noexcept {
  std::optional<Node> node = from;
  for (std::size_t i = 0; node && i < text.size(); ++i) node = child(*node, text[i]);
  return node;
}

Trie::Match Trie::longest(std::string_view text, Node from) const noexcept {
  Match match;
  Node node = from;
  for (std::size_t i = 0; i < text.size();) {
    const auto next = child(node, text[i]);
    if (!next) break;
    node = *next;
    ++i;
    if (nodes_[node].value != no_value) match = {i, nodes_[node].value};
  }
  return match;
}

}  // namespace wye::models
