#pragma once
/// The three pictures of the report, as PNG files in memory; empty if there was no memory.
#include <cstdint>
#include <string>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "runner.hpp"

namespace document_network {

/// The similarity of all pairs of documents in the order of their groups: 0 (nothing in common) to
/// 255 (equal), row by row. If there are more than `largest_side` documents, a row stands for
/// several, and an element is the mean of their pairs.
struct SimilarityMap {
  static constexpr std::size_t largest_side = 1200;
  std::size_t side = 0;
  std::vector<std::uint8_t> shades;
};

/// The position and size of a document on the timeline.
struct Moment {
  double position = 0;    ///< 0: the oldest, 1: now
  double importance = 0;  ///< its rank, reduced by its age
  double relevance = 0;   ///< its similarity to its nearest neighbour
  std::uint32_t group = 0;
};

/// Draws all pairs, with similar documents side by side. `by_meaning`: a model made their vectors.
std::string draw_heatmap(const std::vector<Document>& documents, const SimilarityMap& map,
                         const Groups& groups, const std::vector<float>& rank, bool by_meaning = false);

/// Draws the documents of highest rank and their nearest neighbours.
/// Errors: those of the job that places them.
wye::Result<std::string> draw_network(Runner& runner, const std::vector<Document>& documents,
                                      const Neighbours& neighbours, const Groups& groups,
                                      const std::vector<float>& rank);

/// Draws when the documents of each group were written, and their present importance.
/// Units:   `decay` is the power of e that an importance loses from the oldest document to now.
std::string draw_timeline(const std::vector<Document>& documents, const std::vector<Moment>& moments,
                          const Groups& groups, const std::vector<float>& rank, double decay);

/// Returns the document of highest rank in `group`, a `known` one if there is any. The group is
/// named after it.
std::uint32_t speaker(const Groups& groups, std::size_t group, const std::vector<Document>& documents,
                      const std::vector<float>& rank);

/// "1,234"
std::string with_commas(std::size_t number);

}  // namespace document_network
