#pragma once
/// The documents that could be read, with their words counted.
#include <cstddef>
#include <string>
#include <vector>

#include "documents.hpp"
#include "progress.hpp"
#include "tfidf.hpp"

namespace document_network {

struct Corpus {
  std::vector<Document> documents;
  std::vector<Bag> bags;  ///< of each document
  Vocabulary vocabulary;
  Skipped skipped;
  std::size_t repaired = 0;   ///< documents that were not UTF-8
  std::size_t synthetic = 0;  ///< documents that were not read: the last ones
};

/// Reads the documents of `listing`. If they are fewer than `wanted` and not none, adds synthetic
/// ones: each has two passages of 40 to 159 words from documents that were read. The same documents
/// give the same synthetic ones.
Corpus gather(Listing listing, std::size_t wanted, Progress& progress);

}  // namespace document_network
