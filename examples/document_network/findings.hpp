#pragma once
/// The results of an analysis that the report shows.
#include <cstddef>
#include <string>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "meaning.hpp"
#include "report.hpp"
#include "tfidf.hpp"

namespace document_network {

/// Returns the ten documents of highest rank.
std::vector<Ranked> highest_ranked(const std::vector<Document>& documents, const std::vector<float>& rank);

/// Returns the twelve most similar pairs, of at least 0.3, that are not equal. Pairs of well-known
/// documents are preferred.
std::vector<Pair> most_alike(const std::vector<Document>& documents, const Neighbours& neighbours);

/// Returns the five documents of highest rank that equal no earlier one, each with its nearest by
/// words and by meaning. `words` has a row for each document.
std::vector<NearestOfBoth> nearest_of_both(const std::vector<Document>& documents, const Vectors& words,
                                           const Neighbours& by_meaning, const std::vector<float>& rank);

/// Returns the eight documents with the sentences that are most similar to a question. Nearly equal
/// sentences are one answer.
std::vector<Answer> best_answers(const std::vector<Document>& documents, const Meaning& meaning);

/// Returns the nearest neighbours as JSON: "documents" are the paths, and "neighbours" are, for each
/// document, pairs of another's place in that list and their similarity, closest first.
std::string neighbours_json(const std::vector<Document>& documents, const Neighbours& neighbours);

/// Counts the documents that equal an earlier one.
std::size_t count_copies(const Neighbours& neighbours);

}  // namespace document_network
