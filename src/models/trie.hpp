#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace wye::inline v0::models {

/// Finds the longest string of a set at the beginning of a text.
/// Cost:   a search of at most 256 bytes for each byte of the found string.
/// Threads: thread-compatible.
class Trie {
 public:
  using Node = std::uint32_t;
  static constexpr Node root = 0;
  static constexpr std::uint32_t no_value = ~std::uint32_t{0};

  struct Match {
    std::size_t length = 0;  ///< 0: no string of the set, or the empty string
    std::uint32_t value = no_value;
  };

  Trie() : Trie(std::span<std::pair<std::string_view, std::uint32_t>>{}) {}
  /// Sorts `strings`, which are different.
  explicit Trie(std::span<std::pair<std::string_view, std::uint32_t>> strings);

  /// Returns the node behind `text`, if a string of the set begins with it.
  std::optional<Node> find(std::string_view text, Node from = root) const noexcept;
  std::uint32_t value(Node node) const noexcept { return nodes_[node].value; }
  /// Returns the longest string that follows `from`.
  Match longest(std::string_view text, Node from = root) const noexcept;

 private:
  struct Inner {
    Node children = 0;  ///< the first child; the others follow, in the order of their labels
    std::uint32_t value = no_value;
    std::uint16_t count = 0;
  };
  std::optional<Node> child(Node node, char label) const noexcept;

  std::vector<Inner> nodes_;
  std::string labels_;  ///< by node: the last byte of the path to it
};

}  // namespace wye::models
