#pragma once
/// What there is to tell of an analysis.
#include <cstddef>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "report.hpp"

namespace document_network {

/// The ten documents of highest rank.
std::vector<Ranked> highest_ranked(const std::vector<Document>& documents, const std::vector<float>& rank);

/// The twelve pairs that are most alike, at least 0.3, without being the same: of documents that people know, where
/// there are any.
std::vector<Pair> most_alike(const std::vector<Document>& documents, const Neighbours& neighbours);

/// How many documents say the same as an earlier one.
std::size_t count_copies(const Neighbours& neighbours);

}  // namespace document_network
