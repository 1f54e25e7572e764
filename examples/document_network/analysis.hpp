#pragma once
/// The compute work of the program: vectors in; relations, ranks and dates out.
#include <wye/records/progress_bars.hpp>

#include <span>
#include <vector>

#include "documents.hpp"
#include "graph.hpp"
#include "pictures.hpp"
#include "runner.hpp"
#include "tfidf.hpp"

namespace document_network {

struct Analysis {
  SimilarityMap map;
  Neighbours neighbours;
  Groups groups;
  std::vector<float> rank;  ///< sums to one
  std::vector<Moment> moments;
  double host_seconds = 0;  ///< time that this program spent itself
};

/// The power of e by which importance decays from the oldest document to the newest.
inline constexpr float importance_decay = 2.0f;

/// Sets `similarities` to the cosine of `row` and each of `rows`, all of length 1.
/// Errors: those of the job.
wye::Result<void> compare_with(std::span<const float> row, std::span<const float> rows,
                               std::vector<float>& similarities, Runner& runner);

/// Normalizes, compares, weighs, ranks and dates documents, given their vectors.
/// Errors: those of the jobs.
wye::Result<Analysis> analyse(const std::vector<Document>& documents, Vectors vectors, Runner& runner,
                              wye::ProgressBars& progress);

}  // namespace document_network
