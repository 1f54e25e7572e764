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
  std::size_t repaired = 0;  ///< documents that were not UTF-8
};

Corpus gather(Listing listing, Progress& progress);

}  // namespace document_network
