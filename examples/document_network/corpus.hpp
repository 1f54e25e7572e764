#pragma once
/// The documents that could be read, with their words counted.
#include <wye/records/progress_bars.hpp>

#include <cstddef>
#include <string>
#include <vector>

#include "documents.hpp"
#include "tfidf.hpp"

namespace document_network {

struct Corpus {
  std::vector<Document> documents;
  std::vector<Bag> bags;  ///< of each document
  Vocabulary vocabulary;
  Skipped skipped;
  std::size_t repaired = 0;        ///< documents that were not UTF-8
  std::size_t synthetic = 0;       ///< documents that were not read: the last ones
  std::vector<std::string> texts;  ///< the beginning of each document, if they are kept
};

/// The most bytes of a text that is kept: more than a model reads.
inline constexpr std::size_t longest_text = 16 << 10;

/// Reads the documents of `listing`. If they are fewer than `wanted` and not none, adds synthetic
/// ones: each has two passages of 40 to 159 words from documents that were read. The same documents
/// give the same synthetic ones.
/// `keeps_texts`: the beginnings of the texts are kept.
Corpus gather(Listing listing, std::size_t wanted, wye::ProgressBars& progress, bool keeps_texts = false);

}  // namespace document_network
