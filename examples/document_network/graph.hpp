#pragma once
/// The documents as a graph: nearest neighbours and groups.
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
  float weight = 0;  ///< the share of its attention that the other gets
};

/// The links of each document, closest first.
using Neighbours = std::vector<std::vector<Link>>;

/// Returns the `count` documents that are most similar to one document. Equal ones keep their
/// order; documents without any similarity are left out. The weights are zero.
std::vector<Link> nearest(std::uint32_t self, std::span<const float> similarities, std::size_t count);

/// Groups of similar documents.
struct Groups {
  std::vector<std::uint32_t> of;                    ///< the group of each document; 0 is the largest
  std::vector<std::vector<std::uint32_t>> members;  ///< of each group, similar documents side by side
};

/// Joins documents into groups while that increases modularity: the weight inside the groups beyond
/// chance. Source: Clauset, Newman and Moore, "Finding community structure in very large networks",
/// 2004.
Groups find_groups(const Neighbours& neighbours);

}  // namespace document_network
