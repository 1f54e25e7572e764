#pragma once
/// The results of an analysis that the report shows.
#include <cstddef>
#include <string>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "report.hpp"

namespace document_network {

/// Returns the ten documents of highest rank.
std::vector<Ranked> highest_ranked(const std::vector<Document>& documents, const std::vector<float>& rank);

/// Returns the twelve most similar pairs, of at least 0.3, that are not equal. Pairs of well-known
/// documents are preferred.
std::vector<Pair> most_alike(const std::vector<Document>& documents, const Neighbours& neighbours);

/// Returns the nearest neighbours as JSON: "documents" are the paths, and "neighbours" are, for each
/// document, pairs of another's place in that list and their similarity, closest first.
std::string neighbours_json(const std::vector<Document>& documents, const Neighbours& neighbours);

/// Counts the documents that equal an earlier one.
std::size_t count_copies(const Neighbours& neighbours);

}  // namespace document_network
