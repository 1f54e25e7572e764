#pragma once
/// The documents as a graph: which are each one's nearest, and which belong together.
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace document_network {

/// One document's relation to another.
struct Link {
  std::uint32_t to = 0;
  float similarity = 0;
  float weight = 0;  ///< how much of its attention the other gets
};

/// The links of each document, closest first.
using Neighbours = std::vector<std::vector<Link>>;

/// The `count` most similar of a document's others; of equals the first, none that has nothing in common with
/// it.
std::vector<Link> nearest(std::uint32_t self, std::span<const float> similarities,
                          std::span<const float> weights, std::size_t count);

/// Documents that belong together.
struct Groups {
  std::vector<std::uint32_t> of;                    ///< the group of each document; 0 is the largest
  std::vector<std::vector<std::uint32_t>> members;  ///< of each group, like next to like
};

/// Joins documents into groups for as long as that leaves more weight inside them than chance would.
/// Source: Clauset, Newman and Moore, "Finding community structure in very large networks", 2004.
Groups find_groups(const Neighbours& neighbours);

}  // namespace document_network
