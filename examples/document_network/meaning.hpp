#pragma once
/// Vectors of documents by their meaning.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "progress.hpp"
#include "runner.hpp"
#include "tfidf.hpp"

namespace document_network {

/// The vectors of a model.
struct Meaning {
  Vectors vectors;                                      ///< of each text: the sum of its passages' vectors
  std::vector<std::string> passages;                    ///< of all texts, each once
  std::vector<std::vector<std::uint32_t>> passages_of;  ///< of each text, places in `passages`
  std::vector<float> similarities;  ///< of each passage to the question; empty if there is none
  std::string model;
  std::size_t tokens = 0;
  double seconds = 0;
};

/// Embeds the first passages of texts with the model in a folder, and compares them with a question,
/// unless it is empty.
/// With `Runner::backends`, the beginnings of some texts are embedded on each backend.
/// Errors: those of the model and of the jobs; unsupported (this build has no models).
wye::Result<Meaning> embed(const std::vector<std::string>& texts, const std::string& question,
                           const std::string& folder, Runner& runner, Progress& progress);

}  // namespace document_network
