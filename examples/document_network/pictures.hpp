#pragma once
/// The three pictures of the report, as PNG files in memory; empty where there was no memory for one.
#include <cstdint>
#include <string>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"

namespace document_network {

/// How alike all pairs of documents are: 0 (nothing in common) to 255 (the same), row by row.
struct SimilarityMap {
  std::size_t side = 0;
  std::vector<std::uint8_t> shades;
};

/// What the timeline says of a document.
struct Moment {
  double position = 0;    ///< 0: the oldest, 1: now
  double importance = 0;  ///< its rank, faded by its age
  double relevance = 0;   ///< how close its nearest neighbour is
  std::uint32_t group = 0;
};

/// All pairs, with alike documents side by side.
std::string draw_heatmap(const std::vector<Document>& documents, const SimilarityMap& map,
                         const Groups& groups, const std::vector<float>& rank);

/// The documents of highest rank and their nearest neighbours.
std::string draw_network(const std::vector<Document>& documents, const Neighbours& neighbours,
                         const Groups& groups, const std::vector<float>& rank);

/// When the documents of each group were written, and how much each still counts.
/// Units:   `decay` is the power of e that an importance loses from the oldest document to now.
std::string draw_timeline(const std::vector<Document>& documents, const std::vector<Moment>& moments,
                          const Groups& groups, const std::vector<float>& rank, double decay);

/// The document of `group` that has the highest rank; one that is `known` if there is any. It gives the group
/// its name.
std::uint32_t speaker(const Groups& groups, std::size_t group, const std::vector<Document>& documents,
                      const std::vector<float>& rank);

/// "1,234"
std::string with_commas(std::size_t number);

}  // namespace document_network
