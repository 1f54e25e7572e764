#pragma once
/// The work that is given to wye: vectors in, relations, ranks and moments out.
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "pictures.hpp"
#include "progress.hpp"
#include "runner.hpp"
#include "tfidf.hpp"

namespace document_network {

struct Analysis {
  SimilarityMap map;
  Neighbours neighbours;
  Groups groups;
  std::vector<float> rank;  ///< they add up to one
  std::vector<Moment> moments;
  double host_seconds = 0;  ///< what this program did of it itself
};

/// How fast what a document says loses importance: by the power of e from the oldest to the newest.
inline constexpr float decay = 2.0f;

/// Normalizes, compares, weighs, ranks and dates the documents whose vectors these are.
/// Errors: those of the jobs.
wye::Result<Analysis> analyse(const std::vector<Document>& documents, Vectors vectors, Runner& runner,
                              Progress& progress);

}  // namespace document_network
