#pragma once
/// Vectors of documents by their meaning.
#include <wye/records/progress_bars.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "documents.hpp"
#include "runner.hpp"
#include "tfidf.hpp"

namespace document_network {

/// Vectors of passages that differ in a name or a year.
inline constexpr float nearly_equal = 0.9f;

/// Returns the cosine of two vectors of length 1.
inline float cosine(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
}

/// A passage that is near to a question.
struct NearPassage {
  std::uint32_t passage = 0;
  std::string sentence = {};       ///< that of the passage which is nearest to the question
  float similarity = 0;            ///< of the sentence and the question
  std::vector<float> vector = {};  ///< of the sentence, of length 1
};

/// The vectors of a model.
struct Meaning {
  Vectors vectors;                    ///< of each text: the sum of its first passages' vectors
  std::vector<std::string> passages;  ///< of all texts, each once
  std::vector<std::vector<std::uint32_t>> passages_of;  ///< of each text, places in `passages`
  std::vector<NearPassage> near;  ///< to the question, the nearest sentence first; empty without one
  std::string model;
  std::size_t tokens = 0;
  double seconds = 0;
};

/// Embeds the first passages of texts with the model in a folder. Compares them with a question, and
/// all passages of well-known documents too, unless it is empty.
/// With `Runner::backends`, the beginnings of some texts are embedded on each backend.
/// Errors: those of the model and of the jobs; unsupported (this build has no models).
wye::Result<Meaning> embed(const std::vector<Document>& documents, const std::vector<std::string>& texts,
                           const std::string& question, const std::string& folder, Runner& runner,
                           wye::ProgressBars& progress);

}  // namespace document_network
